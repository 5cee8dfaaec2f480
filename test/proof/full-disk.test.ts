import { fullDisk } from '../../proof/full-disk.ts';
import { describeRow } from '../../proof/describe-row.ts';

describeRow(fullDisk);

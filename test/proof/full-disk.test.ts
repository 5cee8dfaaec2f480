import { fullDisk } from '../support/proof/full-disk.ts';
import { describeRow } from '../support/proof/describe-row.ts';

describeRow(fullDisk);

import { disk } from '../../proof/disk.ts';
import { describeRow } from '../../proof/describe-row.ts';

describeRow(disk);

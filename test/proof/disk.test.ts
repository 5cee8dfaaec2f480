import { disk } from '../support/proof/disk.ts';
import { describeRow } from '../support/proof/describe-row.ts';

describeRow(disk);

import { upgrade } from '../../proof/upgrade.ts';
import { describeRow } from '../../proof/describe-row.ts';

describeRow(upgrade);

import { upgrade } from '../support/proof/upgrade.ts';
import { describeRow } from '../support/proof/describe-row.ts';

describeRow(upgrade);

import { powerLoss } from '../support/proof/power-loss.ts';
import { describeRow } from '../support/proof/describe-row.ts';

describeRow(powerLoss);

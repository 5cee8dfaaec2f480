import { powerLoss } from '../../proof/power-loss.ts';
import { describeRow } from '../../proof/describe-row.ts';

describeRow(powerLoss);

import { describeRow } from '../../proof/describe-row.ts';
import { handover } from '../../proof/handover.ts';

describeRow(handover);

import { kills } from '../../proof/kills.ts';
import { describeRow } from '../../proof/describe-row.ts';

describeRow(kills);

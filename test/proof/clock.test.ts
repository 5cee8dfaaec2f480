import { clock } from '../../proof/clock.ts';
import { describeRow } from '../../proof/describe-row.ts';

describeRow(clock);

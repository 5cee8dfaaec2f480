import { clock } from '../support/proof/clock.ts';
import { describeRow } from '../support/proof/describe-row.ts';

describeRow(clock);

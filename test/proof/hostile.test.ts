import { describeRow } from '../support/proof/describe-row.ts';
import { hostile } from '../support/proof/hostile.ts';

describeRow(hostile, { alone: true });

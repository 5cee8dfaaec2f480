import { describeRow } from '../../proof/describe-row.ts';
import { hostile } from '../../proof/hostile.ts';

describeRow(hostile);

import { fuzz } from '../../proof/fuzz.ts';
import { describeRow } from '../../proof/describe-row.ts';

describeRow(fuzz);

import { fuzz } from '../support/proof/fuzz.ts';
import { describeRow } from '../support/proof/describe-row.ts';

describeRow(fuzz);

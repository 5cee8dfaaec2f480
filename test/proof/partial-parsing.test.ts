import { partialParsing } from '../support/proof/partial-parsing.ts';
import { describeRow } from '../support/proof/describe-row.ts';

describeRow(partialParsing);

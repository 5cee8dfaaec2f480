import { partialParsing } from '../../proof/partial-parsing.ts';
import { describeRow } from '../../proof/describe-row.ts';

describeRow(partialParsing);

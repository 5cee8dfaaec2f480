import { describeRow } from '../support/proof/describe-row.ts';
import { web } from '../support/proof/web.ts';

describeRow(web);

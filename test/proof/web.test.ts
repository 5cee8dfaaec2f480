import { describeRow } from '../../proof/describe-row.ts';
import { web } from '../../proof/web.ts';

describeRow(web);

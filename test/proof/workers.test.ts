import { workers } from '../support/proof/workers.ts';
import { describeRow } from '../support/proof/describe-row.ts';

describeRow(workers);

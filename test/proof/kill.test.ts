import { kills } from '../support/proof/kills.ts';
import { describeRow } from '../support/proof/describe-row.ts';

describeRow(kills);

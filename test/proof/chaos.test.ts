import { briefChaos } from '../support/proof/chaos.ts';
import { describeRow } from '../support/proof/describe-row.ts';

describeRow(briefChaos);

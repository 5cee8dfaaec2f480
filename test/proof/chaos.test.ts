import { briefChaos } from '../../proof/chaos.ts';
import { describeRow } from '../../proof/describe-row.ts';

describeRow(briefChaos);

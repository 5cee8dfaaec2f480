import { workersRestarted } from '../../proof/workers.ts';
import { describeRow } from '../../proof/describe-row.ts';

describeRow(workersRestarted);

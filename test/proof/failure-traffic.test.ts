import { describeRow } from '../../proof/describe-row.ts';
import { failureTraffic } from '../../proof/failure-traffic.ts';

describeRow(failureTraffic);

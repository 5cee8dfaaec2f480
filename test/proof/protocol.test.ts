import { describeRow } from '../../proof/describe-row.ts';
import { protocol } from '../../proof/protocol.ts';

describeRow(protocol);

import { corruptStore } from '../../proof/corrupt-store.ts';
import { describeRow } from '../../proof/describe-row.ts';

describeRow(corruptStore);

import { corruptStore } from '../support/proof/corrupt-store.ts';
import { describeRow } from '../support/proof/describe-row.ts';

describeRow(corruptStore);

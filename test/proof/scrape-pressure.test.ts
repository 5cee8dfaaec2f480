import { describeRow } from '../support/proof/describe-row.ts';
import { scrapePressure } from '../support/proof/scrape-pressure.ts';

describeRow(scrapePressure);

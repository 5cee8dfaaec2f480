import { describeRow } from '../../proof/describe-row.ts';
import { scrapePressure } from '../../proof/scrape-pressure.ts';

describeRow(scrapePressure);

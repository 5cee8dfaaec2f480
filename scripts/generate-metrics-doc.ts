/** Writes docs/metrics.md from a real scrape. With --check it writes nothing and exits 1 when the file is out of date. */
import { writeOrCheck } from './generated-file.ts';
import { metricsDocument } from './metrics-doc/document.ts';

await writeOrCheck('docs/metrics.md', await metricsDocument());

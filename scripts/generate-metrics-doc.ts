/** Writes docs/metrics.md from a real scrape; with --check only tells, by its exit code, whether it is current. */
import { writeOrCheck } from './generated-file.ts';
import { metricsDocument } from './metrics-doc/document.ts';

await writeOrCheck('docs/metrics.md', await metricsDocument());

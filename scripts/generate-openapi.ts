/** Writes docs/openapi.json; with --check only tells, by its exit code, whether it is up to date. */
import { openApiDocument } from '../src/web/api/openapi.ts';
import { writeOrCheck } from './generated-file.ts';

await writeOrCheck('docs/openapi.json', JSON.stringify(openApiDocument()));

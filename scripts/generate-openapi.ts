/** Writes docs/openapi.json. With --check it writes nothing and exits 1 when the file is out of date. */
import { openApiDocument } from '../src/web/api/openapi.ts';
import { writeOrCheck } from './generated-file.ts';

await writeOrCheck('docs/openapi.json', JSON.stringify(openApiDocument()));

/** Writes config/evalwatch.schema.json; with --check only tells, by its exit code, whether it is current. */
import { configJsonSchema } from '../src/config/json-schema.ts';
import { writeOrCheck } from './generated-file.ts';

await writeOrCheck('config/evalwatch.schema.json', JSON.stringify(configJsonSchema(), null, 2));

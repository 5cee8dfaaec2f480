/** Writes config/evalwatch.schema.json. With --check it writes nothing and exits 1 when the file is out of date. */
import { configJsonSchema } from '../src/config/json-schema.ts';
import { writeOrCheck } from './generated-file.ts';

await writeOrCheck('config/evalwatch.schema.json', JSON.stringify(configJsonSchema(), null, 2));

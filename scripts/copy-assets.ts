/** Copies the files that the compiler ignores to dist/: migrations, the compiled scanner, and the assets of the status page. */
import { cp } from 'node:fs/promises';

const ASSETS = [
  'store/sqlite/migrations',
  'store/postgres/migrations',
  'evaluation-api/listing/item-scanner.wasm',
  'web/page/assets',
];
for (const asset of ASSETS) {
  await cp(`src/${asset}`, `dist/${asset}`, { recursive: true });
}

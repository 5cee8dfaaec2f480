/** Copies what the compiler leaves out into dist/: the migrations, the compiled scanner, and what the status page brings. */
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

/**
 * Compiles src/ into the directory of the first argument (default: dist), and copies what the compiler ignores: migrations,
 * the compiled scanner, and the assets of the status page.
 */
import { spawnSync } from 'node:child_process';
import { chmod, cp } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { root } from './shipped-packages.ts';

const ASSETS = [
  'store/sqlite/migrations',
  'store/postgres/migrations',
  'evaluation-api/listing/item-scanner.wasm',
  'web/page/assets',
];
const target = resolve(process.argv[2] ?? 'dist');

const tsc = join(root, 'node_modules/typescript/bin/tsc');
const { status } = spawnSync(
  process.execPath,
  [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', target],
  { stdio: 'inherit' },
);
if (status !== 0) process.exit(1);
for (const asset of ASSETS) {
  await cp(join(root, 'src', asset), join(target, asset), { recursive: true });
}
await chmod(join(target, 'main.js'), 0o755);

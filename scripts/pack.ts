/**
 * Makes the npm package evalwatch-VERSION.tgz in the directory of the first argument (default: the working directory), and
 * prints its path. A plain `npm pack` does not work: Node strips no types below node_modules, so `bin` must be compiled, and
 * the optional Node of the checkout must stay out. The package bundles the packages that package-lock.json pins, with their
 * binaries for every platform, so its installation needs no registry.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { fillPackageDirectory } from './package-directory.ts';

const destination = resolve(process.argv[2] ?? '.');
const directory = await mkdtemp(join(tmpdir(), 'evalwatch-pack-'));
try {
  await fillPackageDirectory(directory);
  const { stdout } = await promisify(execFile)('npm', [
    'pack',
    '--silent',
    `--pack-destination=${destination}`,
    directory,
  ]);
  console.log(join(destination, stdout.trim()));
} finally {
  await rm(directory, { recursive: true });
}

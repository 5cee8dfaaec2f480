/**
 * Makes the npm package evalwatch-VERSION.tgz in the directory of the first argument (default: the working directory), and
 * prints its path. A plain `npm pack` cannot: Node strips no types below node_modules, so `bin` must be compiled, and
 * the optional Node of the checkout must stay out. The package bundles the packages that package-lock.json pins, with their
 * binaries for every platform, so its installation needs no registry.
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { root, shippedPackages } from './shipped-packages.ts';

/** Half of the files, and SQLite's sources, of which the package has the binaries. */
const UNUSED =
  /node_modules\/(?:better-sqlite3\/(?:deps|src)|zod\/src|[^/]+\/tests?)$|\.map$|\.d\.[cm]?ts$|\/(?!licen[cs]e)[^/]*\.md$/i;

const destination = resolve(process.argv[2] ?? '.');
const run = promisify(execFile);
const {
  devDependencies: _,
  optionalDependencies: __,
  scripts: ___,
  ...shipped
} = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Record<string, unknown>;

const directory = await mkdtemp(join(tmpdir(), 'evalwatch-pack-'));
try {
  const manifest = { ...shipped, bin: { evalwatch: 'dist/main.js' }, bundleDependencies: true };
  await writeFile(join(directory, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  const packages = (await shippedPackages()).map(([path]) => path);
  for (const path of packages) {
    await cp(join(root, path), join(directory, path), {
      recursive: true,
      filter: (source) => !UNUSED.test(source),
    });
  }
  for (const file of ['README.md', 'LICENSE', 'CHANGELOG.md']) {
    await cp(join(root, file), join(directory, file));
  }
  await run(process.execPath, [join(root, 'scripts/build.ts'), join(directory, 'dist')]);
  const { stdout } = await run('npm', [
    'pack',
    '--silent',
    `--pack-destination=${destination}`,
    directory,
  ]);
  console.log(join(destination, stdout.trim()));
} finally {
  await rm(directory, { recursive: true });
}

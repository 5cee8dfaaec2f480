import { execFile } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root, shippedPackages } from './shipped-packages.ts';

/** Files to leave out: half of all, with the sources of SQLite (its binaries are kept). */
const UNUSED =
  /node_modules\/(?:better-sqlite3\/(?:deps|src)|zod\/src|[^/]+\/tests?)$|\.map$|\.d\.[cm]?ts$|\/(?!licen[cs]e)[^/]*\.md$/i;

/** Writes everything that the npm package contains into an existing directory. */
export async function fillPackageDirectory(directory: string): Promise<void> {
  const {
    devDependencies: _,
    optionalDependencies: __,
    scripts: ___,
    ...shipped
  } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Record<string, unknown>;
  const manifest = { ...shipped, bin: { evalwatch: 'dist/main.js' }, bundleDependencies: true };
  await writeFile(join(directory, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  const packages = (await shippedPackages()).map(([path]) => path);
  for (const path of packages) {
    await cp(join(root, path), join(directory, path), {
      recursive: true,
      filter: (source) => !UNUSED.test(source),
    });
  }
  for (const file of ['README.md', 'LICENSE', 'CHANGELOG.md', 'config/evalwatch.yaml']) {
    await cp(join(root, file), join(directory, file));
  }
  const build = [join(root, 'scripts/build.ts'), join(directory, 'dist')];
  await promisify(execFile)(process.execPath, build);
}

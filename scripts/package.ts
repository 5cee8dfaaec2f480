/**
 * What evalwatch ships: `build [DIRECTORY]` compiles src/, `pack [DIRECTORY]` makes the npm package, `licences` checks the
 * licences of the production packages, and `sbom` prints their bill of materials.
 */
import { execFile, spawnSync } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

interface LockedPackage {
  readonly version: string;
  readonly license?: string;
  readonly dev?: true;
  readonly optional?: true;
  readonly devOptional?: true;
}

type Manifest = Readonly<Record<string, unknown>>;

export const root = join(import.meta.dirname, '..');
const run = promisify(execFile);
/** What the compiler ignores. */
const ASSETS = [
  'store/sqlite/migrations',
  'store/postgres/migrations',
  'client/listing/item-scanner.wasm',
  'web/page/assets',
];
/** Licences that require only their notice. */
const ALLOWED = new Set([
  'MIT',
  'MIT-0',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
]);
/** Files to leave out: half of all, with the sources of SQLite (its binaries are kept). */
const UNUSED =
  /node_modules\/(?:better-sqlite3\/(?:deps|src)|zod\/src|[^/]+\/tests?)$|\.map$|\.d\.[cm]?ts$|\/(?!licen[cs]e)[^/]*\.md$/i;
const COMMANDS: Readonly<Record<string, (directory?: string) => Promise<void>>> = {
  build,
  pack,
  licences: checkLicences,
  sbom: printSbom,
};

if (import.meta.main) {
  const [name = '', directory] = process.argv.slice(2);
  const command = COMMANDS[name];
  if (command === undefined) throw new Error(`the command must be ${Object.keys(COMMANDS).join()}`);
  await command(directory);
}

/** Returns the packages of the lockfile that the image contains, with paths such as `node_modules/pino`. */
export async function shippedPackages(): Promise<readonly (readonly [string, LockedPackage])[]> {
  const { packages } = await readJson('package-lock.json');
  return Object.entries(packages as Readonly<Record<string, LockedPackage>>).filter(
    ([path, { dev, optional, devOptional }]) => path !== '' && !dev && !optional && !devOptional,
  );
}

/**
 * Whether the `license` of a package is allowed. One allowed licence of an OR such as `(MIT OR Apache-2.0)` is enough. A text
 * with AND is refused, for a person to review.
 */
export function isAllowed(license: string): boolean {
  if (/\bAND\b/i.test(license)) return false;
  const choices = license.replaceAll(/[()]/g, '').split(' OR ');
  return choices.some((choice) => ALLOWED.has(choice.trim()));
}

async function build(directory = 'dist'): Promise<void> {
  const target = resolve(directory);
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const args = [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', target];
  // Stdout is the output of `pack`.
  const { status } = spawnSync(process.execPath, args, { stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(1);
  for (const asset of ASSETS) {
    await cp(join(root, 'src', asset), join(target, asset), { recursive: true });
  }
  await chmod(join(target, 'main.js'), 0o755);
}

/**
 * Makes evalwatch-VERSION.tgz and prints its path. A plain `npm pack` does not work: Node strips no types below
 * node_modules, so `bin` must be compiled, and the optional Node of the checkout must stay out. The package bundles the
 * packages that package-lock.json pins, with their binaries for every platform, so its installation needs no registry.
 */
async function pack(destination = '.'): Promise<void> {
  await inTemporaryDirectory(async (directory) => {
    const {
      devDependencies: _,
      optionalDependencies: __,
      scripts: ___,
      ...shipped
    } = await readJson('package.json');
    const manifest = { ...shipped, bin: { evalwatch: 'dist/main.js' }, bundleDependencies: true };
    await writeFile(join(directory, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
    for (const [path] of await shippedPackages()) {
      const filter = (source: string) => !UNUSED.test(source);
      await cp(join(root, path), join(directory, path), { recursive: true, filter });
    }
    for (const file of ['README.md', 'LICENSE', 'CHANGELOG.md', 'config/evalwatch.yaml']) {
      await cp(join(root, file), join(directory, file));
    }
    await build(join(directory, 'dist'));
    const target = resolve(destination);
    const { stdout } = await run('npm', [
      'pack',
      '--silent',
      `--pack-destination=${target}`,
      directory,
    ]);
    console.log(join(target, stdout.trim()));
  });
}

async function checkLicences(): Promise<void> {
  const shipped = await shippedPackages();
  const refused = shipped.filter(([, { license }]) => !isAllowed(license ?? ''));
  for (const [path, { version, license }] of refused) {
    console.error(`${path} ${version}: licence ${license ?? 'unknown'}`);
  }
  if (refused.length > 0) {
    console.error('these licences are not in the list ALLOWED of scripts/package.ts');
    process.exitCode = 1;
  } else {
    console.log(`${shipped.length} packages, all with allowed licences`);
  }
}

/**
 * Prints the packages as CycloneDX. `npm sbom --omit=dev` leaves out packages that a development tool uses as well (yaml,
 * zod). So npm reads a lockfile that contains only the shipped packages.
 */
async function printSbom(): Promise<void> {
  const {
    devDependencies: _,
    optionalDependencies: __,
    ...manifest
  } = await readJson('package.json');
  const packages = { '': manifest, ...Object.fromEntries(await shippedPackages()) };
  const lockfile = { ...(await readJson('package-lock.json')), packages };
  await inTemporaryDirectory(async (directory) => {
    // npm names the application after its directory.
    const cwd = join(directory, 'evalwatch');
    await mkdir(cwd);
    await writeFile(join(cwd, 'package.json'), JSON.stringify(manifest));
    await writeFile(join(cwd, 'package-lock.json'), JSON.stringify(lockfile));
    const options = ['--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
    const { stdout } = await run('npm', ['sbom', ...options], { cwd, maxBuffer: 16 * 1024 * 1024 });
    process.stdout.write(stdout);
  });
}

async function readJson(file: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(root, file), 'utf8')) as Manifest;
}

async function inTemporaryDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'evalwatch-package-'));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

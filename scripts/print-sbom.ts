/**
 * Prints the bill of materials of what is shipped, as CycloneDX. `npm sbom --omit=dev` forgets packages that a
 * development tool may use as well (yaml, zod), so npm is shown a lockfile without those that are not shipped.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root, shippedPackages } from './shipped-packages.ts';

type Manifest = Readonly<Record<string, unknown>>;

async function read(file: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(root, file), 'utf8')) as Manifest;
}

const { devDependencies: _, optionalDependencies: __, ...manifest } = await read('package.json');
const lockfile = {
  ...(await read('package-lock.json')),
  packages: { '': manifest, ...Object.fromEntries(await shippedPackages()) },
};

const directory = await mkdtemp(join(tmpdir(), 'evalwatch-sbom-'));
try {
  // npm calls the application by its directory.
  const project = join(directory, 'evalwatch');
  await mkdir(project);
  await writeFile(join(project, 'package.json'), JSON.stringify(manifest));
  await writeFile(join(project, 'package-lock.json'), JSON.stringify(lockfile));
  const { stdout } = await promisify(execFile)(
    'npm',
    ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'],
    { cwd: project, maxBuffer: 16 * 1024 * 1024 },
  );
  process.stdout.write(stdout);
} finally {
  await rm(directory, { recursive: true });
}

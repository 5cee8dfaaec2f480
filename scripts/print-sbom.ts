/**
 * Prints the bill of materials of the shipped packages, as CycloneDX. `npm sbom --omit=dev` leaves out packages that a
 * development tool uses as well (yaml, zod). So npm reads a lockfile that contains only the shipped packages.
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
  // npm names the application after its directory.
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

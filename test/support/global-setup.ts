import { rmSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { bundle } from './bundle.ts';
import { COMPILE_CACHE } from './compile-cache.ts';
import { debianTool, IN_CI } from './debian-tool.ts';
import { BUNDLED_ENTRY } from './entry.ts';
import { chromiumPath } from './page/chromium.ts';
import { POSTGRES_TEMPLATE, postgresPrograms } from './postgres.ts';
import { directoryInMemory } from './temporary.ts';

/** Tools that the tests need beyond npm: a Debian package, and the possible names of its program. */
const TOOLS: readonly (readonly [packageName: string, ...names: string[]])[] = [
  ['prometheus', 'promtool'],
  ['prometheus', 'prometheus'],
  ['prometheus-alertmanager', 'prometheus-alertmanager', 'alertmanager'],
  ['pgbouncer', 'pgbouncer', '/usr/sbin/pgbouncer'],
];

/**
 * Warns of missing tools, bundles the program for the processes that tests start, and creates one directory for all
 * temporary files, in memory if there is room, because tests often wait for the disk. The PostgreSQL servers of the tests
 * share their first files there.
 */
export default async function setup(project: TestProject): Promise<void> {
  const { path } = await directoryInMemory();
  // Not in a teardown, which Vitest skips after Ctrl-C.
  process.once('exit', () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }));
  const template = join(path, 'postgres');
  await mkdir(template);
  // The compile cache outlives the directory.
  Object.assign(process.env, COMPILE_CACHE);
  process.env['TMPDIR'] = path;
  process.env[POSTGRES_TEMPLATE] = template;
  // PostgreSQL does not run as root.
  if (process.getuid?.() === 0) {
    await chmod(path, 0o711);
    await chmod(template, 0o777);
  }
  await bundleSources();
  project.onTestsRerun(bundleSources);
  warnOfMissing();
}

/**
 * Bundles src/ for the processes that tests start. If it has an error, they start from src/ and only some tests fail; in CI
 * the run fails.
 */
async function bundleSources(): Promise<void> {
  try {
    process.env[BUNDLED_ENTRY] = await bundle();
  } catch (error) {
    if (IN_CI) throw error;
    delete process.env[BUNDLED_ENTRY];
    console.warn(`\n!! src/ cannot be bundled: ${String(error)}\n`);
  }
}

/**
 * Installs missing tools where possible, before the tests run, and warns of those that are still missing. Without them the
 * tests check less, and in CI (`CI=true`) they fail.
 */
function warnOfMissing(): void {
  const missing = TOOLS.filter((tool) => debianTool(...tool) === undefined);
  // Debian installs it outside the PATH, in a directory for each version.
  if (postgresPrograms() === undefined) missing.push(['postgresql', 'postgres']);
  if (chromiumPath === undefined) missing.push(['chromium', 'chromium']);
  if (missing.length === 0) return;
  const names = missing.map(([, name]) => name).join(', ');
  const packages = [...new Set(missing.map(([packageName]) => packageName))].join(' ');
  console.warn(
    `\n!! ${names} not installed (Debian: apt-get install ${packages}), so what needs them is not ` +
      'checked: whether Prometheus takes the metrics and rules, whether Alertmanager pages, what a browser makes of the ' +
      'status page, and what several workers do with PostgreSQL. Every other test runs.\n',
  );
}

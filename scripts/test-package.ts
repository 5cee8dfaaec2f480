/**
 * Makes the npm package, installs it in an empty directory without a registry, and polls a simulated service with it.
 * Exits 1 at the first failed check.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { World } from '../src/simulator/world.ts';
import { startWorld } from '../test/support/service.ts';
import { root } from './package.ts';

/** A command of a package without all its files may wait for ever. */
const MAX_WAIT_MS = 300_000;
const KEY = 'a-key-of-the-package-test';
const run = promisify(execFile);
const env = {
  PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`,
  HOME: process.env['HOME'],
  EVAL_KEY: KEY,
};

await using cleanup = new AsyncDisposableStack();
const directory = await mkdtemp(join(tmpdir(), 'evalwatch-package-'));
cleanup.defer(() => rm(directory, { recursive: true, force: true }));

function report(what: string, figure = 'ok'): void {
  console.log(`${what.padEnd(48)} ${figure}`);
}

const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
  readonly version: string;
};
const packed = await run(process.execPath, [join(root, 'scripts/package.ts'), 'pack', directory]);
const archive = packed.stdout.trim();
assert.equal(archive, join(directory, `evalwatch-${version}.tgz`));
report('package', `${((await stat(archive)).size / 1e6).toFixed(1)} MB`);

const cwd = join(directory, 'empty');
await mkdir(cwd);
await run('npm', ['install', '--offline', '--ignore-scripts', archive], { cwd, env });
report('installed without a registry');

const evalwatch = async (...args: string[]) =>
  (await run(join(cwd, 'node_modules/.bin/evalwatch'), args, { cwd, env, timeout: MAX_WAIT_MS }))
    .stdout;
assert.equal(await evalwatch('--version'), `${version}\n`);
await evalwatch('init', 'example.yaml');
assert.match(await readFile(join(cwd, 'example.yaml'), 'utf8'), /^# Configuration of evalwatch/);
report('writes a configuration');
const project = 'checkout-bot';
const world = new World([project]);
world.addPrompt(project, { status: 'RUNNING' });
const service = cleanup.use(await startWorld(world, new Map([[KEY, project]])));
await writeFile(
  join(cwd, 'evalwatch.yaml'),
  JSON.stringify({
    service: { base_url: service.url, api_key_env: 'EVAL_KEY' },
    projects: [{ id: project }],
    store: { path: 'evalwatch.db' },
  }),
);
const polled: unknown = JSON.parse(await evalwatch('poll', '--json', '--config', 'evalwatch.yaml'));
assert.ok(Array.isArray(polled) && polled.length === 1, JSON.stringify(polled));
assert.equal((polled[0] as { readonly ok: boolean }).ok, true);
report('polls');

/**
 * Builds the image and runs it as documented, against a simulated service in this process. Checks its size, its privileges,
 * its stop, the rotation of a key and an upgrade. Exits 1 at the first failed check.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Life } from '../src/simulator/life.ts';
import { DEFAULT_PROJECTS } from '../src/simulator/texts.ts';
import { World } from '../src/simulator/world.ts';
import { startWorld } from '../test/support/service.ts';

const execute = promisify(execFile);
/** Maximum size of the output of a call. */
const MOST_OUTPUT_BYTES = 64 * 1024 * 1024;

const TAG = 'evalwatch:container-test';
const MAX_IMAGE_BYTES = 150_000_000;
const MAX_WAIT_MS = 60_000;
const PORT = 10_579;
const BASE = `http://127.0.0.1:${PORT}`;
const root = join(import.meta.dirname, '..');
const name = `evalwatch-test-${process.pid}`;
const volume = `${name}-data`;

const engine: Engine = await findEngine(process.env);
await using cleanup = new AsyncDisposableStack();
const directory = await mkdtemp(join(tmpdir(), 'evalwatch-container-'));
cleanup.defer(() => rm(directory, { recursive: true, force: true }));
// The user of the container is not the owner of this directory.
await chmod(directory, 0o755);

const world = new World(DEFAULT_PROJECTS);
const life = new Life(world);
const ticks = setInterval(() => life.step(), 100);
cleanup.defer(() => clearInterval(ticks));
const keys = new Map([['the-first-key-of-many', undefined]]);
const service = cleanup.use(await startWorld(world, keys));
const secret = await createMountedSecret(join(directory, 'secret'), 'the-first-key-of-many');
const configDirectory = join(directory, 'etc');
await mkdir(configDirectory);
await writeFile(
  join(configDirectory, 'evalwatch.yaml'),
  JSON.stringify({
    service: {
      base_url: service.url,
      api_key_file: '/run/secrets/evalwatch/key',
      max_requests_per_second: 0,
    },
    schedule: '* * * * * *',
    projects: world.projects.map((id) => ({ id })),
  }),
);

function report(what: string, figure = 'ok'): void {
  console.log(`${what.padEnd(48)} ${figure}`);
}

async function start(): Promise<void> {
  await engine.run(
    'run',
    '--detach',
    '--name',
    name,
    '--network=host',
    '--read-only',
    '--cap-drop=all',
    '--security-opt=no-new-privileges',
    `--env=EVALWATCH_WEB_LISTEN=127.0.0.1:${PORT}`,
    '--ulimit=nofile=10000:10000',
    '--ulimit=nproc=4096:4096',
    `--volume=${configDirectory}:/etc/evalwatch:ro`,
    `--volume=${volume}:/data`,
    `--volume=${secret.directory}:/run/secrets/evalwatch:ro`,
    TAG,
  );
  const deadline = performance.now() + MAX_WAIT_MS;
  while (!(await isReady())) {
    if (performance.now() > deadline) throw new Error(await engine.run('logs', name));
    await sleep(100);
  }
}

async function isReady(): Promise<boolean> {
  return await fetch(`${BASE}/-/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
}

async function stop(): Promise<void> {
  const started = performance.now();
  await engine.run('stop', '-t', '10', name);
  assert.equal(await engine.run('inspect', '--format={{.State.ExitCode}}', name), '0');
  report('SIGTERM: exit 0', `${((performance.now() - started) / 1000).toFixed(2)} s`);
}

/** Returns the sum of the samples of a metric. */
async function metric(prefix: string): Promise<number> {
  const text = await (await fetch(`${BASE}/metrics`)).text();
  const values = text
    .split('\n')
    .filter((line) => line.startsWith(prefix))
    .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
  return values.reduce((sum, value) => sum + value, 0);
}

const transitions = () => metric('evalwatch_prompt_transitions_total{');
const failedPolls = () => metric('evalwatch_poll_failures_total{');

async function waitFor(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS;
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within a minute`);
    await sleep(100);
  }
  report(what);
}

/** Returns the output of a line of JavaScript that runs inside the container. */
const inside = (code: string) => engine.run('exec', name, 'node', '--eval', code);

await engine.build(root, TAG, ['--build-arg', 'REVISION=first']);
const bytes = Number(await engine.run('image', 'inspect', '--format={{.Size}}', TAG));
assert.ok(bytes < MAX_IMAGE_BYTES, `the image has ${bytes} bytes`);
report('image', `${(bytes / 1e6).toFixed(1)} MB`);

cleanup.defer(async () => {
  await engine.run('rm', '--force', name).catch(() => {});
  await engine.run('volume', 'rm', '--force', volume).catch(() => {});
});
await start();
const status = await inside(`console.log(fs.readFileSync('/proc/self/status', 'utf8'))`);
const field = (key: string) => new RegExp(`^${key}:\\s+(.*)$`, 'm').exec(status)?.[1];
assert.equal(field('Uid'), '1000\t1000\t1000\t1000');
report('user', field('Uid')?.replaceAll('\t', ' '));
for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
  assert.equal(field(set), '0'.repeat(16), set);
}
report('capabilities', 'none');
assert.equal(field('NoNewPrivs'), '1');
report('NoNewPrivs', '1');
const written = `try { fs.writeFileSync('/app/x', '') } catch (error) { console.log(error.code) }`;
assert.equal(await inside(written), 'EROFS');
report('writing outside /data', 'EROFS');
const shells = `console.log(['/bin/sh', '/usr/bin/bash'].filter((path) => fs.existsSync(path)).length)`;
assert.equal(await inside(shells), '0');
report('shells', '0');
const bill = JSON.parse(
  await inside(`console.log(fs.readFileSync('/usr/share/evalwatch/sbom.cdx.json', 'utf8'))`),
) as { readonly bomFormat: string; readonly components: readonly { readonly name: string }[] };
assert.equal(bill.bomFormat, 'CycloneDX');
const names = bill.components.map((component) => component.name);
assert.ok(names.includes('yaml') && !names.includes('vitest'), names.join());
report('SBOM', `${names.length} components`);
await engine.run('exec', name, 'node', '/app/dist/health-check.js');
report('health check');
const failures = await engine.run('exec', name, 'evalwatch', 'failures', '--json');
assert.ok(Array.isArray(JSON.parse(failures)), failures);
report('evalwatch is on the PATH');
await waitFor('moves are seen', async () => (await transitions()) > 0);

const before = await failedPolls();
keys.clear();
keys.set('the-second-key-of-many', undefined);
await waitFor('a revoked key fails polls', async () => (await failedPolls()) > before);
await secret.replace('the-second-key-of-many');
await waitFor(
  'the key rotated in its mounted secret is taken up',
  async () => (await metric('evalwatch_project_up{')) === world.projects.length,
);
const seen = await transitions();
await stop();

await engine.run('rm', name);
await engine.build(root, TAG, ['--build-arg', 'REVISION=second']);
await start();
assert.ok((await transitions()) >= seen, 'the totals went back');
assert.equal(await metric('evalwatch_build_info{'), 1);
const lines = await engine.run('logs', name);
assert.ok(!lines.includes('store.created'), lines);
report('a new image goes on with the store of the volume', `${seen} transitions`);
await stop();

/** The container engine of this machine. */
interface Engine {
  /** Builds the Dockerfile of `directory` into the image `tag`. */
  build(directory: string, tag: string, args: readonly string[]): Promise<void>;
  /** Runs the engine with these arguments. @returns its stdout, trimmed */
  run(...args: readonly string[]): Promise<string>;
}

/**
 * Finds a container engine: the program in `CONTAINER_ENGINE`, with optional arguments, otherwise docker or podman.
 * `CONTAINER_BUILD` is the build command of engines that build with another program; directory and tag are appended to it.
 * `NODE_IMAGE` replaces the base image of the Dockerfile where that one is not available.
 * @throws {Error} when there is no engine
 */
async function findEngine(env: NodeJS.ProcessEnv): Promise<Engine> {
  const command = env['CONTAINER_ENGINE']?.split(' ') ?? (await firstOf(['docker', 'podman']));
  const builder = env['CONTAINER_BUILD']?.split(' ');
  const nodeImage = env['NODE_IMAGE'];
  const base = nodeImage === undefined ? [] : ['--build-arg', `NODE_IMAGE=${nodeImage}`];
  return {
    build: async (context, tag, args) => {
      if (builder === undefined)
        await call([...command, 'build', '-t', tag, ...base, ...args, context]);
      else await call([...builder, context, tag, ...base, ...args]);
    },
    run: (...args) => call([...command, ...args]),
  };
}

async function firstOf(programs: readonly string[]): Promise<readonly string[]> {
  for (const program of programs) {
    const found = await call([program, 'version']).then(
      () => true,
      () => false,
    );
    if (found) return [program];
  }
  throw new Error('neither docker nor podman works here: name an engine in CONTAINER_ENGINE');
}

async function call([program = '', ...args]: readonly string[]): Promise<string> {
  const { stdout } = await execute(program, args, { maxBuffer: MOST_OUTPUT_BYTES });
  return stdout.trim();
}

/** A directory with one key file that is replaced like in Kubernetes: `key` is a link through `..data` to a directory. */
interface MountedSecret {
  readonly directory: string;
  replace(key: string): Promise<void>;
}

async function createMountedSecret(path: string, key: string): Promise<MountedSecret> {
  let version = 0;
  const write = async (text: string) => {
    version += 1;
    await mkdir(join(path, `..v${version}`), { mode: 0o755 });
    await writeFile(join(path, `..v${version}`, 'key'), `${text}\n`, { mode: 0o644 });
    await symlink(`..v${version}`, join(path, '..next'));
    await rename(join(path, '..next'), join(path, '..data'));
    await rm(join(path, `..v${version - 1}`), { recursive: true, force: true });
  };
  await mkdir(path, { mode: 0o755 });
  await write(key);
  await symlink('..data/key', join(path, 'key'));
  return { directory: path, replace: write };
}

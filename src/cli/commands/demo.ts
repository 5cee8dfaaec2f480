import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Daemon } from '../../app/daemon.ts';
import { commandName } from '../../config/environment.ts';
import { visible } from '../../domain/visible.ts';
import type { MonitorEvent } from '../../monitor/events.ts';
import { Life } from '../../simulator/life.ts';
import { DEFAULT_KEY, startSimulator } from '../../simulator/service.ts';
import { DEFAULT_PROJECTS } from '../../simulator/texts.ts';
import { World } from '../../simulator/world.ts';
import type { Context, Define } from '../command.ts';
import { loadConfiguration } from '../query.ts';

const PORT = 10570;

export const defineDemo: Define = (command, run) => {
  command.action(run(demo));
};

async function demo(context: Context): Promise<number> {
  const stop = Promise.withResolvers<void>();
  context.signals.onSignal = () => stop.resolve();
  await using opened = new AsyncDisposableStack();
  await start(context, opened);
  await stop.promise;
  return 0;
}

async function start(context: Context, opened: AsyncDisposableStack): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'evalwatch-demo-'));
  opened.defer(() => rm(directory, { recursive: true, force: true }));
  const world = new World(DEFAULT_PROJECTS, () => context.clock.now());
  const life = new Life(world);
  const simulator = await startSimulator(world, {
    port: 0,
    tickMs: 1000,
    step: () => life.step(),
  });
  opened.defer(() => simulator.close());

  const file = join(directory, 'evalwatch.yaml');
  await writeFile(join(directory, 'api-key'), DEFAULT_KEY, { mode: 0o600 });
  await writeFile(file, configuration(simulator.url, world.projects));
  const daemon = await startDaemonOnFreePort(file, context);
  opened.defer(() => daemon.stop());
  await context.stdout
    .write(`A simulated Evaluation Service, and evalwatch, which polls it every 2 seconds. Ctrl-C stops both.

  overview  ${daemon.url}/
  metrics   ${daemon.url}/metrics
  service   ${simulator.url}  (API key ${DEFAULT_KEY})
  query     ${commandName(context.env)} failures --config ${file}

`);
}

function configuration(baseUrl: string, projects: readonly string[]): string {
  return `service:
  base_url: ${baseUrl}
  api_key_file: api-key
schedule: "*/2 * * * * *"
expect:
  max_running: 2m
projects:
${projects.map((id) => `  - id: ${JSON.stringify(id)}\n    datasets: true`).join('\n')}
store:
  path: evalwatch.db
web:
  listen: 127.0.0.1:${PORT}
`;
}

async function startDaemonOnFreePort(file: string, context: Context): Promise<Daemon> {
  const [{ createLogger }, { startDaemon }] = await Promise.all([
    import('../../log/logger.ts'),
    import('../../app/daemon.ts'),
  ]);
  // Environment variables of a real installation must not affect the demo.
  const config = await loadConfiguration(file, {}, 'with keys');
  const startOn = (port: number) =>
    startDaemon({
      config: { ...config, web: { ...config.web, port } },
      loadConfig: () => Promise.resolve(config),
      // The demo prints readable lines instead of the log.
      logger: createLogger({
        level: 'error',
        destination: { write: () => {} },
        onFatalError: () => {},
      }),
      clock: context.clock,
      revision: 'unknown',
      observers: [(event) => void printEvent(event, context)],
    });
  return await startOn(PORT).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    return startOn(0);
  });
}

async function printEvent(event: MonitorEvent, { stdout, clock }: Context): Promise<void> {
  const text = describeEvent(event);
  if (text === undefined) return;
  const time = new Date(clock.now()).toISOString().slice(11, 19);
  // The terminal may be gone.
  await stdout.write(`${time}  ${visible(text)}\n`).catch(() => {});
}

function describeEvent(event: MonitorEvent): string | undefined {
  if (event.type === 'listing.baseline') {
    const counts = Object.entries(event.counts).map(([status, count]) => `${count} ${status}`);
    return `${event.project}  first look at its ${event.kind}s: ${counts.join(', ')}`;
  }
  if (event.type === 'record.transition') {
    const { kind, id, from, to } = event.transition;
    return `${event.project}  ${kind} ${id}  ${from} -> ${to}`;
  }
  if (event.type === 'prompt.failed') {
    const { error_id, error_msg } = event.errorInfo ?? {};
    const cause = event.reason ?? `${error_id}: ${error_msg}`;
    return `${event.project}  prompt ${event.promptId}  FAILED because of ${cause}`;
  }
  if (event.type === 'experiment.finished') {
    const { project, experiment, counts } = event.finish;
    const { COMPLETED, FAILED } = counts;
    return `${project}  experiment ${experiment} finished: ${COMPLETED} completed, ${FAILED} failed`;
  }
  if (event.type !== 'poll.finished' || event.failure === undefined) return undefined;
  return `${event.project}  poll failed: ${event.failure.message}`;
}

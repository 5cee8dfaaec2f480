import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { startSimulator } from '../../src/simulator/server.ts';
import { World } from '../../src/simulator/world/world.ts';
import { KEY } from '../../test/support/soak/configuration.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import type { Figures } from '../row.ts';
import { createCrew, settle, type Member } from '../workers/crew.ts';
import { startServers } from '../workers/servers.ts';
import { differencesOf, FAILING, type Outage, STUCK, TRUE_FROM_START } from './judge.ts';
import { SCRAPE_S, startPrometheus } from './prometheus.ts';

const WORKERS = 3;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Time until the alert about the failing key fires, and the one about the stuck prompt is pending. */
const WARM_UP_MS = 6.5 * MINUTE;
/** Pause between two disturbances: some scrapes. */
const PAUSE_MS = 75 * SECOND;
/** The orchestrator removes a killed worker from the targets after this time. */
const REMOVED_MS = 60 * SECOND;
/** Some scrapes without the database, but less than the `for` of alerts that would be true. */
const AWAY_MS = 60 * SECOND;
/** Half an hour, including the warm-up. */
const ROUNDS = 3;

const PROJECTS = [
  FAILING,
  STUCK,
  ...Array.from({ length: 22 }, (_, index) => `project-${index}`),
].map((id) => ({ id, datasets: false, team: 'search', expect: { max_running: '1m' } }));

/**
 * Kills, stops and replaces workers and crashes their database, while Prometheus scrapes them and evaluates the rules at the
 * shipped intervals. A second Prometheus evaluates `mistaken`, whose mistake must show.
 * @throws if an alert wrongly begins or ends, or a total goes backwards
 */
export async function watchLive(
  program: string,
  { rules, mistaken }: { readonly rules: string; readonly mistaken: string },
  print: (line: string) => void,
): Promise<Figures> {
  await using opened = new AsyncDisposableStack();
  const { path: directory } = opened.use(await temporaryDirectory());
  const servers = opened.use(await startServers(false));
  const world = new World({
    now: Date.now,
    projects: PROJECTS.map(({ id }) => id),
    promptsPerProject: 0,
    datasetsPerProject: 0,
  });
  const simulator = await startSimulator({ world, keys: KEY });
  opened.defer(() => simulator.close());
  simulator.faults.set([{ fault: { kind: 'status', code: 401 }, project: FAILING }]);
  world.addPrompt(STUCK, { id: 'stuck', status: 'RUNNING' });
  const moving = setInterval(() => move(world), SECOND);
  opened.defer(() => clearInterval(moving));
  const crew = opened.use(
    await createCrew({
      directory,
      source: undefined,
      serviceUrl: simulator.url,
      projects: PROJECTS,
      lease: '10s',
      schedule: '*/5 * * * * *',
      database: {
        host: '127.0.0.1',
        port: servers.primary().port,
        url: (port) => servers.url(port),
      },
    }),
  );
  const file = join(directory, 'targets.json');
  /** Makes the members and the `dead` workers targets. */
  async function setTargets(...dead: readonly Member[]): Promise<void> {
    const targets = [...crew.members, ...dead].map(
      ({ daemon }) => new URL(daemon.url() ?? '').host,
    );
    await writeFile(`${file}.new`, JSON.stringify([{ targets }]));
    await rename(`${file}.new`, file);
  }
  const addWorker = async () => {
    await crew.join();
    await setTargets();
  };
  await Promise.all(Array.from({ length: WORKERS }, () => crew.join()));
  await settle(crew, PROJECTS.length);
  await setTargets();
  const start = (name: string, text: string) =>
    startPrometheus(program, join(directory, name), text, file);
  const prometheus = opened.use(await start('prometheus', rules));
  const control = opened.use(await start('control', mistaken));
  const from = Date.now() / SECOND + 60;
  const first = () => {
    const [member] = crew.members;
    if (member === undefined) throw new Error('nobody is there');
    return member;
  };
  await setTimeout(WARM_UP_MS);
  print('alerts fire and are pending');

  /** Periods in which no worker could show a project. */
  const outages: Outage[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    // This comes first: for five minutes after an instance is gone, even the mistaken rules keep its values.
    const crashedAt = Date.now() / SECOND;
    await servers.primary().kill();
    await setTimeout(AWAY_MS);
    await servers.primary().start();
    await settle(crew, PROJECTS.length);
    outages.push({ from: crashedAt, to: Date.now() / SECOND + SCRAPE_S });
    await setTimeout(2 * PAUSE_MS);
    print(`round ${round}: the database crashed`);

    const killed = first();
    await crew.kill(killed);
    await setTargets(killed);
    await setTimeout(REMOVED_MS);
    await addWorker();
    await settle(crew, PROJECTS.length);
    await setTimeout(PAUSE_MS);
    print(`round ${round}: a worker was killed and replaced`);

    const left = first();
    await crew.leave(left);
    await setTargets();
    await settle(crew, PROJECTS.length);
    await setTimeout(PAUSE_MS);
    await addWorker();
    print(`round ${round}: a worker was stopped and replaced`);

    for (const member of crew.members) {
      await addWorker();
      await crew.leave(member);
      await setTargets();
      await setTimeout(10 * SECOND);
    }
    await settle(crew, PROJECTS.length);
    await setTimeout(PAUSE_MS);
    print(`round ${round}: all workers were replaced`);
  }

  const to = Date.now() / SECOND;
  const seen = { from, to, outages, projects: PROJECTS.length };
  const { found, unshownS } = await differencesOf(prometheus, seen);
  if (found.length > 0) throw new Error(`${found.length} differences:\n${found.join('\n')}`);
  const { found: noticed } = await differencesOf(control, seen);
  if (noticed.length === 0) throw new Error('not noticed: what nobody shows is forgotten');
  return [
    [
      `kill, stop, rolling restart, database crash, ${ROUNDS} times each`,
      `${PROJECTS.length} projects, ${WORKERS} workers, ${Math.round((to - from) / 60)} minutes of Prometheus: 0 alerts but those that are true, 0 gaps in ${TRUE_FROM_START.length}; 0 totals went backwards`,
    ],
    ['longest time without series of a project, database outages apart', `${unshownS} s`],
    ['without what carries values on', `${noticed.length} differences, first: ${noticed[0]}`],
  ];
}

/** Completes prompts of most projects, and adds others. */
function move(world: World): void {
  for (const { id } of PROJECTS) {
    if (id === FAILING || id === STUCK) continue;
    const prompts = world.prompts(id)?.values().toArray() ?? [];
    for (const prompt of prompts) {
      if (prompt.status === 'RUNNING') world.setStatus(id, prompt.id, 'COMPLETED');
    }
    if (prompts.length < 300) world.addPrompt(id, { status: 'RUNNING' });
  }
}

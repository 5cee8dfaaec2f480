import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { StoreReader } from '../../src/monitor/ports/store.ts';
import { type Daemon, KEY, startDaemon, until, workspace } from '../../test/support/evalwatch.ts';
import { scrape } from '../../test/support/scrape.ts';
import { startWorld } from '../../test/support/service.ts';
import { RandomWorld } from '../random-world.ts';
import { differences, type TimeSpan } from './judge.ts';

const MISSING_AFTER = 2;
const TICK_MS = 300;
/** Maximum time between serving a listing and the commit of its poll, ms. */
const POLL_MS = 10_000;

interface SceneOptions {
  readonly seed: number;
  readonly projects: number;
  /** Seconds between two polls. */
  readonly every: number;
  readonly lease: string;
  /** Address of the database. */
  readonly url: string;
  readonly openReader: () => Promise<StoreReader>;
}

export type Scene = Awaited<ReturnType<typeof createScene>>;

/** Starts a lively world and a service that shows it to workers with one configuration and one database. */
export async function createScene(options: SceneOptions) {
  await using opened = new AsyncDisposableStack();
  const projects = Array.from({ length: options.projects }, (_, n) => ({
    id: `project ${n + 1}`,
    datasets: n % 2 === 0,
  }));
  const ids = projects.map(({ id }) => id);
  const world = new RandomWorld({
    now: () => Date.now(),
    seed: options.seed,
    projects: ids,
    promptsPerProject: 20,
    datasetsPerProject: 3,
    oddIds: true,
    rates: {
      start: 0.15,
      finish: 0.1,
      fail: 0.5,
      rerun: 0.05,
      arrivals: 0.2,
      comeBack: 0.5,
      dataset: 0.1,
    },
  });
  const service = opened.use(await startWorld(world, new Map([[KEY, undefined]])));
  const place = opened.use(
    await workspace(service.url, {
      projects,
      missing_after: MISSING_AFTER,
      schedule: `*/${options.every} * * * * *`,
      log: { level: 'debug' },
      service: { timeout: '10s', retries: 0, max_concurrency: 256 },
      store: { postgres_url_file: 'url', lease: options.lease },
    }),
  );
  await writeFile(join(place.directory, 'url'), options.url);
  const ticks = setInterval(() => world.step(), TICK_MS);
  opened.defer(() => clearInterval(ticks));

  const members = new Set<Daemon>();
  opened.defer(async () => {
    await Promise.all([...members].map((daemon) => daemon[Symbol.asyncDispose]()));
  });
  /** Logs of all workers so far. */
  const logs: Daemon['lines'][] = [];
  const troubles: TimeSpan[] = [];
  const found: string[] = [];

  /** Starts a worker, again if it did not reach the database in time, and waits until it is up. */
  async function joinIn(source: string | undefined): Promise<void> {
    for (;;) {
      const daemon = startDaemon(place, { source });
      const isUp = await Promise.race([daemon.url().then(Boolean, () => false), daemon.ended]);
      if (isUp === true) {
        members.add(daemon);
        logs.push(daemon.lines);
        void noteEnd(daemon);
        return;
      }
      const { stderr } = await daemon.ended;
      if (!stderr.includes('cannot be reached')) throw new Error(`a worker ended: ${stderr}`);
    }
  }

  async function noteEnd(daemon: Daemon): Promise<void> {
    const { code } = await daemon.ended;
    if (members.delete(daemon)) found.push(`a worker ended by itself with ${code}`);
  }

  async function end(daemon: Daemon): Promise<void> {
    members.delete(daemon);
    const { code, signal, stderr } = await daemon.stop();
    if (code !== 0 || stderr !== '') found.push(`a worker ended with ${code ?? signal}: ${stderr}`);
  }

  /** Stops the world, and waits until each listing was served so often from now on that all states are final. */
  async function rest(): Promise<void> {
    clearInterval(ticks);
    const from = service.arrivals.length;
    const isSeen = () => {
      const listings = service.arrivals.slice(from).filter(({ project }) => project !== undefined);
      const counts = [...Map.groupBy(listings, ({ path }) => path).values()];
      const wanted = projects.length + projects.filter(({ datasets }) => datasets).length;
      return counts.length === wanted && counts.every((all) => all.length >= MISSING_AFTER + 2);
    };
    if (!(await until(isSeen))) found.push('some listings are not asked for any more');
    await setTimeout(options.every * 1000);
  }

  /** Returns the series of all workers, once exactly one of them exports each project, and says so. */
  async function scrapeAll(): Promise<ReadonlyMap<string, number>> {
    const all = { samples: new Map<string, number>() };
    const isShared = async () => {
      const scrapes = await Promise.all(
        [...members].map(async (daemon) => (await scrape(await daemon.url())).samples),
      );
      all.samples = new Map(scrapes.flatMap((samples) => [...samples]));
      const shown = scrapes.map((samples) =>
        ids.filter((id) => samples.has(`evalwatch_project_up{project="${id}"}`)),
      );
      const isTold = scrapes.every(
        (samples, index) => samples.get('evalwatch_worker_projects') === shown[index]?.length,
      );
      return isTold && shown.flat().toSorted().join() === ids.toSorted().join();
    };
    if (!(await until(isShared, 500))) found.push('not every project has series of one worker');
    return all.samples;
  }

  const held = opened.move();
  return {
    ids,
    arrivals: service.arrivals,
    members,
    /** What is wrong so far. */
    found,
    joinIn,
    end,
    /** Marks the time until the returned function is called: the database may not be reached. */
    trouble: () => {
      const span = { from: Date.now() - POLL_MS, to: Infinity };
      troubles.push(span);
      return () => {
        span.to = Date.now();
      };
    },
    /**
     * Lets everything come to rest, ends the workers, and compares what they stored, showed and logged with each other and the
     * world.
     * @throws if there is a difference
     */
    judge: async () => {
      await rest();
      const samples = await scrapeAll();
      await Promise.all([...members].map(end));
      const reader = await options.openReader();
      const [transitions, failures, statuses] = await Promise.all([
        reader.transitions({}),
        reader.failures({}),
        reader.statuses({}),
      ]);
      await reader.close();
      const seen = {
        world,
        samples,
        transitions,
        failures,
        statuses,
        lines: logs.flat(),
        troubles,
      };
      found.push(...differences(seen));
      if (found.length > 0) {
        throw new Error(`${found.length} differences:\n${found.slice(0, 20).join('\n')}`);
      }
      return { transitions: transitions.length, failures: failures.length };
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '../src/app/clock.ts';
import { openPostgresReader } from '../src/store/postgres/postgres-reader.ts';
import { type Daemon, until } from '../test/support/evalwatch.ts';
import {
  postgresPrograms,
  type PostgresServer,
  promote,
  startPostgres,
  startStandby,
} from '../test/support/postgres.ts';
import { copyWithBug } from './bug.ts';
import { type Figures, required, type Row, type RowOptions } from './row.ts';
import { OTHERS_FAILURES } from './simulation/mistakes.ts';
import { createScene, type Scene } from './workers/scene.ts';

interface Size {
  readonly workers: number;
  readonly projects: number;
  /** Seconds between two polls. */
  readonly every: number;
  /** Times that all workers are replaced by those of the next version, and by those of this version again. */
  readonly upgrades: number;
  readonly failovers: number;
}

const LONG: Size = { workers: 4, projects: 40, every: 5, upgrades: 4, failovers: 6 };
const SHORT: Size = { workers: 3, projects: 12, every: 2, upgrades: 1, failovers: 1 };
/** Long enough that a busy machine does not lose one, which lets two workers poll at the same tick. */
const LEASE = '20s';

/**
 * Several workers on one PostgreSQL and its standby: their statements at the same time, upgrades to a version with another
 * migration and back, and failovers.
 */
export const workers: Row = {
  name: 'workers',
  judges: ['src/coordination/', 'src/store/postgres/'],
  bug: [
    {
      what: 'a worker reports failures of projects that others own',
      file: 'store/failures.ts',
      replace: OTHERS_FAILURES,
      notice: /[23] lines of/,
    },
    {
      what: 'a worker rejects a newer schema that is compatible',
      file: 'store/postgres/sql/migrate.ts',
      replace: [['schema.compatible_from > SCHEMA_VERSION', 'schema.version > SCHEMA_VERSION']],
      notice: /run the newer evalwatch that wrote it/,
    },
    {
      what: 'a worker tries only the first server',
      file: 'store/postgres/servers.ts',
      replace: [['of settings.servers)', 'of settings.servers.slice(0, 1))']],
      notice: /projects are not polled/,
    },
  ],
  run: async ({ short, ...options }) => {
    required('PostgreSQL', postgresPrograms());
    return await run(short ? SHORT : LONG, options);
  },
};

async function run(
  size: Size,
  { seed, print, source }: Omit<RowOptions, 'short'>,
): Promise<Figures> {
  const { projects, every } = size;
  await using servers = await startServers();
  await using scene = await createScene({
    seed,
    projects,
    every,
    lease: LEASE,
    url: servers.url,
    openReader: () => openPostgresReader({ clock: systemClock, url: servers.url }),
  });
  await using next = await copyOfNextVersion();
  await Promise.all(Array.from({ length: size.workers }, () => scene.joinIn(source)));
  await settle(scene);
  print(`${size.workers} workers share ${projects} projects`);
  const schemaVersion = await servers.schemaVersion();

  let ticks = 0;
  for (let n = 0; n < size.upgrades; n += 1) {
    for (const version of [next.source, source]) {
      const from = Date.now();
      await replaceAll(scene, version);
      await setTimeout(every * 1000);
      const checked = checkTicks(scene, every * 1000, from, Date.now());
      ticks += checked.ticks;
      scene.found.push(...checked.doubled);
    }
    if ((await servers.schemaVersion()) !== schemaVersion + 1) {
      throw new Error('the next version has not migrated');
    }
  }
  print(`${size.upgrades} upgrades, each to the next version and back`);

  const polledAfter: number[] = [];
  for (let n = 0; n < size.failovers; n += 1) {
    const isOver = scene.trouble();
    const at = Date.now();
    await servers.failOver();
    const from = Date.now();
    if (!(await until(async () => (await servers.notPolledSince(from)) === 0, 100))) {
      throw new Error('some projects are not polled after a failover');
    }
    polledAfter.push(Date.now() - at);
    await settle(scene);
    await servers.rebuild();
    isOver();
  }
  const longest = Math.max(...polledAfter);
  print(`${size.failovers} failovers`);
  const { transitions, failures } = await scene.judge();
  return [
    ['requests', String(scene.arrivals.length)],
    ['transitions, failures', `${transitions}, ${failures}`],
    ['upgrades', `${size.upgrades} and back, ${ticks} ticks, none polled twice`],
    ['failovers', `${size.failovers}, polled again after ${longest} ms at most`],
  ];
}

/** Replaces every worker in turn by one with these sources. */
async function replaceAll(scene: Scene, source: string | undefined): Promise<void> {
  for (const member of Array.from(scene.members)) {
    await scene.joinIn(source);
    await scene.end(member);
    await settle(scene);
  }
}

/** Waits until the workers own every project, and each of them its share or less. */
async function settle({ members, ids }: Scene): Promise<void> {
  const owned = () => [...members].map(ownedBy);
  const isSettled = () => {
    const share = Math.ceil(ids.length / members.size);
    const sum = owned().reduce((total, count) => total + count, 0);
    return sum === ids.length && owned().every((count) => count <= share);
  };
  if (await until(isSettled)) return;
  throw new Error(`${ids.length} projects, and owned are ${owned().join(', ')}`);
}

/** Returns the number of projects that a worker owns, from its log. */
function ownedBy({ lines }: Daemon): number {
  const line = lines.findLast(({ event }) => event.startsWith('worker.'));
  return Number(line?.['owned'] ?? 0);
}

/** Checks that no listing is requested twice in a whole interval between these two times, epoch ms. */
function checkTicks({ arrivals }: Scene, intervalMs: number, from: number, to: number) {
  const first = Math.ceil(from / intervalMs);
  const last = Math.floor(to / intervalMs) - 1;
  const doubled: string[] = [];
  const listings = Map.groupBy(
    arrivals.filter(({ project }) => project !== undefined),
    ({ path }) => path,
  );
  for (const [path, all] of listings) {
    const times = all.map(({ at }) => performance.timeOrigin + at);
    const ticks = Map.groupBy(times, (at) => Math.floor(at / intervalMs));
    for (let tick = first; tick <= last; tick += 1) {
      const own = (ticks.get(tick) ?? []).map((at) => new Date(at).toISOString());
      if (own.length > 1) doubled.push(`polled twice: ${path} at ${own.join(' and ')}`);
    }
  }
  return { ticks: listings.size * Math.max(0, last - first + 1), doubled };
}

/** Starts a primary and its synchronous standby. */
async function startServers() {
  await using opened = new AsyncDisposableStack();
  const running = new Set<PostgresServer>();
  opened.defer(async () => {
    await Promise.all([...running].map((server) => server[Symbol.asyncDispose]()));
  });
  let primary = await startPostgres({ fsync: true });
  running.add(primary);
  const { name, url } = await primary.createDatabase();
  let standby = await startStandby(primary);
  running.add(standby);
  const hosts = [primary, standby].map(({ port }) => `127.0.0.1:${port}`).join(',');
  const held = opened.move();
  const read = async (text: string, ...values: readonly unknown[]) => {
    const [row] = await primary.query(name, text, values);
    return Number(row?.['value']);
  };
  return {
    /** Address of the database, with both servers. */
    url: url.replace(`127.0.0.1:${primary.port}`, hosts),
    schemaVersion: () => read('SELECT version AS value FROM evalwatch.schema_version'),
    /** Counts projects whose last stored poll began before this time, epoch ms. */
    notPolledSince: (at: number) =>
      read(
        'SELECT count(*) AS value FROM evalwatch.project WHERE coalesce(last_poll_at, 0) < $1',
        at,
      ),
    /** Kills the primary and promotes its standby. */
    failOver: async () => {
      await primary.kill();
      await promote(standby);
      [primary, standby] = [standby, primary];
    },
    /** Starts a new standby in place of the lost primary. */
    rebuild: async () => {
      const { port } = standby;
      running.delete(standby);
      await standby[Symbol.asyncDispose]();
      standby = await startStandby(primary, port);
      running.add(standby);
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

/** Statements that a migration may make while workers of the previous version run. */
const MADE_UP = `
ALTER TABLE evalwatch.project ADD COLUMN note text;
ALTER TABLE evalwatch.record ADD COLUMN weight integer NOT NULL DEFAULT 1;
CREATE TABLE evalwatch.made_up (project_key bigint PRIMARY KEY, text text NOT NULL);
INSERT INTO evalwatch.made_up SELECT project_key, id FROM evalwatch.project;
CREATE INDEX transition_record ON evalwatch.transition (record_id);
`;
const END = '\n];\n\n/** The schema version that this program writes. */';

/** Copies the sources and adds a made-up migration; `await using` removes the copy. */
async function copyOfNextVersion() {
  const copy = await copyWithBug({
    file: 'store/postgres/sql/migrate.ts',
    replace: [[END, `{ file: 'made-up.sql', compatibleFrom: 7 },${END}`]],
  });
  await writeFile(join(copy.source, 'store/postgres/migrations/made-up.sql'), MADE_UP);
  return copy;
}

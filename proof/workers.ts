import { setTimeout } from 'node:timers/promises';
import { postgresPrograms } from '../test/support/postgres-server.ts';
import { type Figures, required, type Row, type RowOptions } from './row.ts';
import {
  checkTicks,
  crashDatabase,
  killOne,
  type Place,
  restartAll,
  stopAt,
} from './workers/acts.ts';
import { settle } from './workers/crew.ts';
import { failOverAgain } from './workers/failovers.ts';
import { BOUNDS, describe, most, over, repeat, sum } from './workers/figures.ts';
import { copyOfNextVersion } from './workers/next-version.ts';
import { measureRate } from './workers/rate.ts';
import { createScene, type Scene } from './workers/scene.ts';

interface Size {
  readonly workers: number;
  readonly projects: number;
  /** Seconds between two polls: longer than a project has no owner when a worker leaves in an orderly way. */
  readonly every: number;
  readonly lease: string;
  readonly kills: number;
  readonly places: readonly Place[];
  /** Number of rounds; in each, a worker stops at each place. */
  readonly stops: number;
  readonly stoppedMs: number;
  /** Restarts of all workers, to the next version and back in turns. */
  readonly restarts: number;
  readonly crashes: number;
  readonly awayMs: number;
  readonly failovers: number;
  readonly rateSeconds: number;
  /** Whether times are checked: a busy machine can be late. */
  readonly isTimed: boolean;
}

const COMMITTING: readonly Place[] = ['between diff and commit', 'mid-statement'];
const PLACES: readonly Place[] = [...COMMITTING, 'polling', 'between line and settlement'];

const LONG: Size = {
  workers: 5,
  places: PLACES,
  projects: 20,
  every: 5,
  lease: '10s',
  kills: 100,
  stops: 10,
  stoppedMs: 60_000,
  restarts: 4,
  crashes: 3,
  awayMs: 15_000,
  failovers: 10,
  rateSeconds: 120,
  isTimed: true,
};
/** No failovers and no rate: other tests cover them without whole daemons. */
const SHORT: Size = {
  workers: 3,
  places: ['between diff and commit', 'between line and settlement'],
  projects: 6,
  every: 3,
  lease: '5s',
  kills: 1,
  stops: 1,
  stoppedMs: 7000,
  restarts: 1,
  crashes: 1,
  awayMs: 3000,
  failovers: 0,
  rateSeconds: 0,
  isTimed: false,
};
const ONLY_STOPS: Size = { ...SHORT, workers: 5, projects: 8, kills: 0, restarts: 0, crashes: 0 };
/**
 * Sizes by part: enough to notice that a stopped worker repeats what others have done by now; and the restarts, which `npm
 * test` runs.
 */
const FEW: Readonly<Record<string, Size>> = {
  commits: { ...ONLY_STOPS, workers: 4, places: [...COMMITTING, 'polling'], stops: 2 },
  settlements: { ...ONLY_STOPS, workers: 2, projects: 4, places: ['between line and settlement'] },
  // No kill or stop has to end a lease here, and a busy machine must not lose it.
  restarts: { ...SHORT, workers: 2, every: 2, lease: '20s', kills: 0, stops: 0, crashes: 0 },
};

/** Several workers on one PostgreSQL: killed, stopped, restarted, and without their database for a while. */
export const workers: Row = {
  name: 'workers',
  bug: [
    {
      what: 'a commit is not held to the ownership that it was made under',
      part: 'commits',
      file: 'store/postgres/sql/poll-commit.ts',
      replace: [
        [
          'WHERE id = $1 AND epoch = $2 AND version = $3 AND owner = $15\n  RETURNING project_key',
          'WHERE id = $1 AND ($2::bigint, $3::bigint, $15::text) IS NOT NULL\n  RETURNING project_key',
        ],
      ],
      notice: /no chain|told twice|recorded/,
    },
    {
      what: 'a failure is counted again when its line is repeated',
      part: 'settlements',
      file: 'store/postgres/sql/error-totals.ts',
      replace: [
        ['FROM settled s LEFT JOIN', 'FROM evalwatch.failure s LEFT JOIN'],
        [') own ON true\n', ') own ON true WHERE s.transition_id = $1\n'],
      ],
      notice: /counted, \d+ settled/,
    },
  ],
  run: async ({ short, source, part = '', ...options }) => {
    required('PostgreSQL', postgresPrograms());
    const size = FEW[part] ?? (short ? SHORT : LONG);
    const [disturbed, others] = await Promise.all([
      disturb(size, { ...options, source }),
      (async () => [
        ...(size.rateSeconds === 0 ? [] : await measureRate(size.rateSeconds, options.seed)),
        ...(size.failovers === 0 ? [] : await failOverAgain(size, options)),
      ])(),
    ]);
    return [...disturbed, ...others];
  },
};

/** Only the restarts: the simulation kills and stops workers and takes their database away, in virtual time. */
export const workersRestarted: Row = {
  ...workers,
  run: (options) => workers.run({ ...options, part: 'restarts' }),
};

async function disturb(
  size: Size,
  { seed, print, source }: Pick<RowOptions, 'seed' | 'print'> & { source: string | undefined },
): Promise<Figures> {
  await using scene = await createScene({
    seed,
    source,
    projects: size.projects,
    every: size.every,
    lease: size.lease,
    // Without reruns, a failure that is settled late still has its error_info.
    reruns: size !== FEW['settlements'],
  });
  const { crew, projects } = scene;
  await Promise.all(Array.from({ length: size.workers }, () => crew.join()));
  await settle(crew, projects);
  print(`${size.workers} workers share ${projects} projects`);

  const kills = await repeat(size.kills, (n) => killOne(scene, n));
  print(`${kills.length} kills`);
  await using next = await copyOfNextVersion();
  const restarts = await repeat(size.restarts, (n) =>
    restart(scene, n % 2 === 0 ? next.source : source),
  );
  if (restarts.length > 0 && (await scene.servers.schemaVersion()) !== next.schemaVersion) {
    throw new Error('the next version has not migrated');
  }
  print(`${restarts.length} restarts`);
  const stops = await repeat(size.stops, async (n) => {
    const stopped = size.places.map(
      (place, index) => [pick(crew.members, n + index), place] as const,
    );
    return await stopAt(scene, stopped, size.stoppedMs);
  });
  print(`${stops.length} rounds of stops`);
  const crashes = await repeat(size.crashes, (n) => crashDatabase(scene, n, size.awayMs));
  print(`${crashes.length} crashes of the database`);

  const { differences, ...judged } = await scene.judge();
  const late = [
    ...kills.flatMap(({ owned, polled }) => [
      ...over('owned again after a kill', owned, BOUNDS.ownedMs),
      ...over('polled again after a kill', polled, BOUNDS.polledMs),
      ...over('polled once it was owned', polled - owned, BOUNDS.atOnceMs),
    ]),
    ...crashes.flatMap(({ polled }) =>
      over('polled again after a crash', polled, BOUNDS.afterCrashMs),
    ),
    ...restarts.flatMap(({ missed }) => missed.map((tick) => `never polled: ${tick}`)),
  ];
  const found = [
    ...differences,
    ...restarts.flatMap(({ doubled }) => doubled.map((tick) => `polled twice: ${tick}`)),
    ...(size.isTimed ? late : []),
  ];
  const refused = sum(stops.flat().map((stop) => stop.refused));
  // A held commit arrives under an ownership that has ended.
  const committed = stops
    .flat()
    .filter((stop) => COMMITTING.includes(stop.place) && stop.refused === 0);
  if (source === undefined) {
    found.push(...committed.map(({ place }) => `nothing was refused to a worker stopped ${place}`));
  }
  if (found.length > 0) {
    throw new Error(describe(found));
  }
  return [
    [
      'kills',
      `${kills.length}: owned again after ${most(kills.map(({ owned }) => owned))} ms (bound ${BOUNDS.ownedMs}), polled again after ${most(kills.map(({ polled }) => polled))} ms (bound ${BOUNDS.polledMs}), at most`,
    ],
    [
      'stops',
      `${stops.flat().length} of ${size.stoppedMs / 1000} s: ${size.places.map((place) => `${stops.flat().filter((stop) => stop.place === place).length} ${place}`).join(', ')}; ${refused} commits refused`,
    ],
    [
      'rolling restarts, to a version with one more migration and back in turns',
      `${restarts.length}: ${sum(restarts.map(({ ticks }) => ticks))} ticks, 0 polled twice, ${sum(restarts.map(({ missed }) => missed.length))} missed`,
    ],
    [
      'crashes of the database',
      `${crashes.length}: polled again ${most(crashes.map(({ polled }) => polled))} ms after its return, at most (bound ${BOUNDS.afterCrashMs}); ${sum(crashes.map(({ commitFailures }) => commitFailures))} failed commits counted`,
    ],
    [
      'transitions',
      `${judged.transitions}, 0 lost, 0 doubled; ${judged.untold} of killed workers without a line`,
    ],
    [
      'moves to FAILED',
      `${judged.failures}, each with a line, ${judged.repeated} of them once more under the same transition_id`,
    ],
    ['store series', 'of each project from one worker'],
  ];
}

interface Restart {
  readonly ticks: number;
  readonly doubled: readonly string[];
  readonly missed: readonly string[];
}

/** Replaces every worker by one from `source`, and checks each tick meanwhile. */
async function restart(scene: Scene, source: string | undefined): Promise<Restart> {
  const from = Date.now();
  await restartAll(scene, source);
  await setTimeout(scene.intervalMs);
  return checkTicks(scene, from, Date.now());
}

function pick<Item>(items: readonly Item[], n: number): Item {
  const item = items[n % items.length];
  if (item === undefined) throw new Error('nobody is there');
  return item;
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { openReader } from '../src/store/sqlite/sqlite-reader.ts';
import { debianTool } from '../test/support/debian-tool.ts';
import { NODE_FLAGS } from '../test/support/node-flags.ts';
import { until } from '../test/support/evalwatch.ts';
import { randomNumbers } from './random.ts';
import { type Figures, required, type Row, type RowOptions } from './row.ts';
import { type AtRest, describeRest, findLeaks, measureAtRest, PROBED } from './soak/leaks.ts';
import { createScene, type Member, type Scene } from './soak/scene.ts';

/** Disturbances of a part, in an order and with pauses from the seed. */
interface Part {
  readonly seconds: number;
  readonly kills: number;
  /** Times that the disk of the daemon fails for a while. */
  readonly troubles: number;
  readonly reloads: number;
}

interface Size {
  readonly projects: number;
  readonly promptsPerProject: number;
  readonly pace: number;
  /** Daemons that are killed. */
  readonly storm: Part;
  /** The life of one daemon: until it is measured for the first time, and from then until it is measured again. */
  readonly life: readonly [warmUp: Part, rest: Part];
}

const MANY = { projects: 100, promptsPerProject: 200, pace: 0.01 };
const LONG: Size = {
  ...MANY,
  storm: { seconds: 240, kills: 16, troubles: 8, reloads: 12 },
  life: [
    { seconds: 120, kills: 0, troubles: 3, reloads: 12 },
    { seconds: 480, kills: 0, troubles: 10, reloads: 60 },
  ],
};
const SHORT: Size = {
  ...MANY,
  storm: { seconds: 25, kills: 4, troubles: 2, reloads: 3 },
  life: [
    { seconds: 10, kills: 0, troubles: 1, reloads: 4 },
    { seconds: 30, kills: 0, troubles: 1, reloads: 20 },
  ],
};
/** Enough to notice a deliberate mistake. */
const MINI: Size = {
  projects: 4,
  promptsPerProject: 20,
  pace: 1,
  storm: { seconds: 10, kills: 1, troubles: 4, reloads: 0 },
  life: [
    { seconds: 3, kills: 0, troubles: 0, reloads: 4 },
    { seconds: 5, kills: 0, troubles: 0, reloads: 20 },
  ],
};

/** Growth between two rests that is no leak: the world has new prompts, and connections and timers come and go. */
const MAX_GROWTH: AtRest = {
  heapMib: 4,
  rssMib: 40,
  files: 0,
  resources: new Map([
    ['TCPSocketWrap', 8],
    ['Timeout', 4],
    ['Immediate', 2],
  ]),
};

/** Project that reloads add and remove, and that the service does not know. */
const STRANGER = { id: 'nobody knows it', datasets: true };
const SCRAPE_EVERY_MS = 2000;
/** Maximum wait for a good moment to kill, ms. */
const LONGEST_WAIT_MS = 3000;
const TROUBLE_MS = 2000;
/** One disk failure in this many ends by a kill. */
const DEADLY = 3;
/** Time that strace takes to attach, ms. */
const ATTACHING_MS = 500;

/** Everything at once on real daemons: a lively world, a faulty service, reloads, kills and a failing disk. */
export const soak: Row = {
  name: 'soak',
  judges: [
    'src/app/',
    'src/concurrency/',
    'src/client/',
    'src/log/',
    'src/store/sqlite/',
    'test/support/oracle/',
  ],
  bug: [
    {
      what: 'what a COMMIT that failed was to store is told',
      file: 'store/sqlite/sql/transactions.ts',
      replace: [
        [
          'if (place.ends) commit.run();',
          'if (place.ends && owed) { const error = owed; owed = undefined; throw error; }\n' +
            'if (place.ends) try { commit.run(); } catch (error) { undo(); owed = error; }',
        ],
        // The next COMMIT fails in its place, so that the number of failures is right.
        [
          "const rollback = db.prepare('ROLLBACK');",
          "const rollback = db.prepare('ROLLBACK');\nlet owed: unknown;",
        ],
      ],
      notice: /told|lines of|baselines of|went from/,
    },
    {
      what: 'a file that was read stays open',
      file: 'files/read-file.ts',
      replace: [
        ['import { readFileSync,', 'import { openSync, readFileSync,'],
        ['readFileSync(path)', "readFileSync(openSync(path, 'r'))"],
      ],
      notice: /leak: open files/,
    },
    {
      what: 'a stop leaves a timer',
      file: 'app/process.ts',
      replace: [['    this.#deadline?.cancel();', '    setInterval(() => this.#deadline, 1000);']],
      notice: /does not end by SIGTERM/,
    },
  ],
  run: async ({ short, ...options }) => {
    if (options.source !== undefined) return await run(MINI, options);
    return await run(short ? SHORT : LONG, options);
  },
};

async function run(
  size: Size,
  { seed, print, source }: Omit<RowOptions, 'short'>,
): Promise<Figures> {
  await using scene = await createScene({
    ...size,
    seed,
    source,
    change: { service: { max_response_size: '1MiB' } },
    openReader: (directory) => openReader({ path: join(directory, 'evalwatch.db') }),
    makeDue: async (directory) => {
      const db = new Database(join(directory, 'evalwatch.db'));
      db.exec('UPDATE failure SET next_try_at = 0 WHERE settled_at IS NULL');
      db.close();
    },
  });
  const disturb = createDisturbance(
    scene,
    randomNumbers(seed),
    required('strace', debianTool('strace', 'strace')),
  );

  scene.live(true);
  let member = await disturb(scene.start(), size.storm);
  await scene.end(member, 'SIGTERM');
  print(`storm: ${scene.journal.length} listings`);

  member = scene.start({ nodeArgs: [...NODE_FLAGS, ...PROBED] });
  const measured: AtRest[] = [];
  for (const part of size.life) {
    scene.live(true);
    await disturb(member, part);
    await scene.rest();
    measured.push(await measureAtRest(member));
    print(`at rest: ${measured.map(describeRest).at(-1)}`);
  }
  const [before, after] = measured as [AtRest, AtRest];
  scene.found.push(...findLeaks(before, after, MAX_GROWTH));

  const { listings, transitions, failures } = await scene.judge();
  const kills = scene.runs.filter(({ killed }) => killed).length;
  return [
    ['listings served whole', String(listings)],
    ['transitions, failures', `${transitions.length}, ${failures.length}`],
    ['daemons, kills', `${scene.runs.length}, ${kills}`],
    ['at rest, before', describeRest(before)],
    ['at rest, after', describeRest(after)],
  ];
}

/**
 * Returns a function that disturbs a daemon as a part describes while it is scraped, and resolves to the one that runs then.
 */
function createDisturbance(scene: Scene, random: () => number, strace: string) {
  let member: Member;
  let kills = 0;
  let troubles = 0;
  let reloads = 0;

  /**
   * Waits for a moment at which a kill can do harm, because most are harmless. In turn: any; just after a listing was
   * served, around its commit; between the lines of a commit; between the line of a failure and its settlement.
   */
  async function waitForMoment(): Promise<void> {
    const served = scene.journal.length;
    const { lines } = member.daemon;
    const told = lines.length;
    const tells = (event: string) => () => lines.slice(told).some((line) => line.event === event);
    const moments = [
      () => true,
      () => scene.journal.length > served,
      tells('prompt.transition'),
      tells('prompt.failed'),
    ];
    const isNow = moments[kills % moments.length] ?? (() => true);
    const deadline = Date.now() + LONGEST_WAIT_MS;
    await until(() => isNow() || Date.now() > deadline, 1);
    if (kills % moments.length === 1) await setTimeout(15 * random());
  }

  async function kill(): Promise<void> {
    await waitForMoment();
    await scene.end(member, 'SIGKILL');
    await setTimeout(1000 * random());
    member = scene.start();
    kills += 1;
  }

  /** Makes the disk fail. The daemon must count failed commits, stay up, and commit again. */
  async function takeTheDisk(mayKill: boolean): Promise<void> {
    const troubled = member;
    const count = async (prefix: string) =>
      [...(await scene.scrapeOf(troubled))]
        .filter(([series]) => series.startsWith(prefix))
        .reduce((sum, [, value]) => sum + value, 0);
    const grows = (prefix: string, from: number) =>
      until(async () => (await count(prefix)) > from, 100);
    const failures = 'evalwatch_store_commit_failures_total{';
    const commits = 'evalwatch_store_commit_duration_seconds_count';
    const failed = await count(failures);
    const isOver = scene.trouble();
    const giveBack = await failingDisk(strace, member.daemon.process.pid ?? 0, troubles);
    troubles += 1;
    try {
      if (!(await grows(failures, failed))) {
        scene.found.push('no failed commit was counted while the disk failed');
      }
      await setTimeout(TROUBLE_MS * random());
      if (mayKill && troubles % DEADLY === 0) await kill();
    } finally {
      await giveBack();
    }
    isOver();
    if (troubled === member && !(await grows(commits, await count(commits)))) {
      scene.found.push('no commit after the disk had failed');
    }
  }

  /** Reloads with another configuration, and with the first one again. */
  async function reload(): Promise<void> {
    const { place, projects } = scene;
    await member.daemon.url();
    const first = { projects, service: { timeout: '5s' }, schedule: '* * * * * *' };
    const changes = [
      () => place.configure({ ...first, service: { timeout: '4s' } }),
      () => place.configure({ ...first, schedule: '*/1 * * * * *' }),
      () => place.configure({ ...first, projects: [...projects, STRANGER] }),
      async () => {
        const text = await readFile(place.config, 'utf8');
        await writeFile(place.config, text.replace('schedule', 'scheduel'));
      },
    ];
    for (const change of [changes[reloads % changes.length], () => place.configure(first)]) {
      await change?.();
      const count = () =>
        member.daemon.lines.filter(({ event }) => event.startsWith('config.reload')).length;
      const before = count();
      member.daemon.process.kill('SIGHUP');
      if (!(await until(() => count() > before))) throw new Error('a reload does not end');
    }
    reloads += 1;
  }

  return async (first: Member, part: Part): Promise<Member> => {
    member = first;
    const over = new AbortController();
    const scraping = (async () => {
      while (!over.signal.aborted) {
        const scraped = member;
        await scraped.daemon.url().catch(() => undefined);
        await scene.watch(scraped, (series) => !series.includes(STRANGER.id));
        await setTimeout(SCRAPE_EVERY_MS);
      }
    })();
    const acts = [
      ...Array.from({ length: part.kills }, () => kill),
      ...Array.from({ length: part.reloads }, () => reload),
      ...Array.from({ length: part.troubles }, () => () => takeTheDisk(part.kills > 0)),
    ]
      .map((act) => ({ act, at: random() }))
      .toSorted((one, other) => one.at - other.at);
    const acting = (async () => {
      const end = performance.now() + part.seconds * 1000;
      for (const [index, { act }] of acts.entries()) {
        const left = (end - performance.now()) / (acts.length - index + 1);
        await setTimeout(Math.max(0, left * (0.4 + 1.2 * random())));
        await act();
      }
      await setTimeout(Math.max(0, end - performance.now()));
    })().finally(() => over.abort());
    await Promise.all([scraping, acting]);
    return member;
  };
}

/**
 * Makes some writes and fsyncs of a process fail until the returned function is called: in each round at other places of its
 * transactions, alternately with EIO and ENOSPC.
 */
async function failingDisk(
  strace: string,
  pid: number,
  round: number,
): Promise<() => Promise<void>> {
  const calls = ['pwrite64', 'fsync', 'pwrite64,fsync'][round % 3] ?? '';
  const error = round % 2 === 0 ? 'EIO' : 'ENOSPC';
  const when = `${1 + (round % 7)}+${2 + (round % 5)}`;
  const child = spawn(
    strace,
    ['-qq', '-f', '-o', '/dev/null', '-p', String(pid), '-e', `trace=${calls}`].concat(
      '-e',
      `inject=${calls}:error=${error}:when=${when}`,
    ),
    { stdio: 'inherit' },
  );
  const ended = once(child, 'close');
  await setTimeout(ATTACHING_MS);
  return async () => {
    child.kill('SIGINT');
    await ended;
  };
}

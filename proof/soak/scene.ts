import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { StoreReader } from '../../src/monitor/ports/store.ts';
import { answerTo } from '../../src/simulator/service.ts';
import type { World } from '../../src/simulator/world.ts';
import {
  type ConfigurationChange,
  type Daemon,
  runCommand,
  type LaunchOptions,
  startDaemon,
  until,
  workspace,
} from '../../test/support/evalwatch.ts';
import { differences } from '../../test/support/oracle.ts';
import {
  type FailureRow,
  type JournalEntry,
  listingsOf,
  type LogLine,
  nameOf,
  type Run,
  type StatusRow,
  type TimeSpan,
  type TransitionRow,
} from '../../test/support/oracle/observation.ts';
import { checkGrowth, storedErrorTotals } from '../../test/support/oracle/totals.ts';
import { type Scrape, scrape } from '../../test/support/scrape.ts';
import { listingIn, startService } from '../../test/support/service.ts';
import { randomNumbers } from '../random.ts';
import { sendFaulty } from './faults.ts';
import { createLivingWorld } from './living-world.ts';

/** API key with special characters of URLs and regular expressions. */
const KEY = 'soaked-through-and-through/key+1';
const MISSING_AFTER = 2;
/** Maximum time between serving a listing and the commit of its poll, ms. */
const POLL_MS = 10_000;
/** A request of the service's own, which has no listing yet. */
const UNCONDITIONAL = { method: 'GET', headers: { 'x-api-key': KEY } };
/** Turns of the event loop in which the service reads what the kernel has of a killed process. */
const TURNS = 50;
const SCRAPES = 20;
/** `--limit` that no history reaches. */
const ALL = '1000000000';

/** A daemon of a scene. */
export interface Member {
  readonly name: string;
  readonly daemon: Daemon;
  readonly run: Run;
}

type Samples = Scrape['samples'];

interface SceneOptions {
  readonly seed: number;
  readonly projects: number;
  readonly promptsPerProject: number;
  /** 1 moves about a tenth of the prompts in each tick. */
  readonly pace: number;
  readonly change: ConfigurationChange;
  /** Directory of the daemons' sources. */
  readonly source: string | undefined;
  /** Opens the store, which is in this directory if it is a file. */
  readonly openReader: (directory: string) => Promise<StoreReader>;
  /** Lets the next try of each pending failure be due, as if its time had passed. */
  readonly makeDue: (directory: string) => Promise<void>;
}

export type Scene = Awaited<ReturnType<typeof createScene>>;

/** Starts a lively world and a service that shows it to daemons with one configuration and one store. */
export async function createScene(options: SceneOptions) {
  const { seed, source, openReader, makeDue, promptsPerProject, pace } = options;
  await using opened = new AsyncDisposableStack();
  const projects = Array.from({ length: options.projects }, (_, n) => ({
    id: `project ${n + 1}`,
    datasets: n % 2 === 0,
  }));
  const ids = projects.map(({ id }) => id);
  const living = createLivingWorld(ids, seed, { promptsPerProject, pace });
  const service = opened.use(await startRecorded(living.world, seed));
  const { journal } = service;
  const place = opened.use(
    await workspace(service.url, {
      projects,
      missing_after: MISSING_AFTER,
      log: { level: 'debug' },
      ...options.change,
      // Few retries, so that some polls fail.
      service: { timeout: '5s', retries: 1, max_concurrency: 256, ...options.change.service },
    }),
  );
  await writeFile(join(place.directory, 'key'), KEY);
  opened.defer(() => living.stop());

  const members = new Set<Member>();
  opened.defer(async () => {
    await Promise.all([...members].map((member) => end(member, 'SIGKILL')));
  });
  const runs: Run[] = [];
  const troubles: TimeSpan[] = [];
  const found: string[] = [];
  /** Last scrape, whoever was scraped. */
  let before: Samples = new Map();

  function start(launch: Pick<LaunchOptions, 'source' | 'nodeArgs'> = {}): Member {
    const name = `daemon ${runs.length + 1}`;
    const garbled: string[] = [];
    const daemon = startDaemon(place, {
      source,
      ...launch,
      onGarbled: (line) => garbled.push(line),
    });
    const lines: readonly LogLine[] = daemon.lines;
    const run = { startedAt: Date.now(), endedAt: Infinity, killed: false, lines };
    const member = { name, daemon, run };
    members.add(member);
    runs.push(run);
    void (async () => {
      const { code, signal, stderr } = await daemon.ended;
      // A busy machine may not connect to the database in time. A supervisor then starts evalwatch again.
      if (daemon.of('daemon.started').length === 0 && stderr.includes('cannot be reached')) {
        members.delete(member);
        runs.splice(runs.indexOf(run), 1);
        return;
      }
      run.endedAt = Date.now();
      run.killed = signal === 'SIGKILL';
      if (members.delete(member)) found.push(`${name} ended by itself with ${code}`);
      else if (!run.killed && code !== 0) found.push(`${name} ended with ${code ?? signal}`);
      if (stderr !== '') found.push(`${name} wrote to stderr: ${stderr}`);
      // A kill may truncate the last line.
      const whole = run.killed ? garbled.slice(0, -1) : garbled;
      found.push(...whole.map((line) => `${name} wrote no log line: ${line}`));
      if (daemon.stdout().includes(KEY)) found.push(`${name} logged the API key`);
    })();
    return member;
  }

  /** Ends a daemon and waits until its last requests are answered, so that nobody takes them for those of another. */
  async function end(member: Member, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const { daemon, name } = member;
    members.delete(member);
    let isEnded = false;
    const ended = daemon.stop(signal).finally(() => (isEnded = true));
    if (!(await until(() => isEnded))) {
      daemon.process.kill('SIGKILL');
      throw new Error(`${name} does not end by ${signal}`);
    }
    await ended;
    for (let turn = 0; turn < TURNS; turn += 1) await setImmediate();
  }

  async function scrapeOf({ daemon, name }: Member): Promise<Samples> {
    const url = await daemon.url();
    const { status, text, samples } = await scrape(url).catch((error: unknown) => {
      // The daemon may close an idle connection just when it is used again.
      if (error instanceof TypeError && error.message === 'fetch failed') return scrape(url);
      throw error;
    });
    if (status !== 200) found.push(`/metrics of ${name} answered ${status}`);
    if (text.includes(KEY)) found.push(`/metrics of ${name} shows the API key`);
    return samples;
  }

  /** Waits until each listing was served so often from now on that all states are final. */
  async function isServedInPeace(): Promise<boolean> {
    const from = Date.now();
    const lacking = new Map(
      listingsOf({ projects }).map((listing) => [nameOf(listing), MISSING_AFTER + 2]),
    );
    let seen = journal.length;
    return await until(() => {
      for (const entry of journal.slice(seen)) {
        if (entry.producedAt < from) continue;
        lacking.set(nameOf(entry), (lacking.get(nameOf(entry)) ?? 0) - 1);
      }
      seen = journal.length;
      return lacking.values().every((left) => left <= 0);
    });
  }

  /** Makes the world move, and the service faulty if it is to be so, until {@link rest}. */
  function live(isFaulty = false): void {
    living.stop();
    living.start();
    service.setFaulty(isFaulty);
  }

  /** Stops the world and its faults, and waits until every daemon has seen it as it is. */
  async function rest(): Promise<void> {
    living.stop();
    service.setFaulty(false);
    if (!(await isServedInPeace())) found.push('some listings are not asked for any more');
  }

  /** Returns the series of all members, once exactly one of them exports each project. */
  async function scrapeAll(): Promise<Samples> {
    for (let tries = 1; ; tries += 1) {
      const scrapes = await Promise.all([...members].map((member) => scrapeOf(member)));
      const wrong = checkOwners(scrapes, ids);
      if (wrong.length === 0 || tries === SCRAPES) {
        found.push(...wrong);
        return new Map(scrapes.flatMap((samples) => [...samples]));
      }
      await setTimeout(500);
    }
  }

  async function command(...args: readonly string[]) {
    const done = await runCommand(place, [...args, '--json'], source);
    const output = done.stdout + done.stderr;
    if (done.code !== 0) throw new Error(`${args.join(' ')} failed: ${output.slice(0, 2000)}`);
    if (output.includes(KEY)) found.push(`${args.join(' ')} printed the API key`);
    return done.json() as unknown;
  }

  /**
   * Lets everything come to rest, ends the daemons, and compares what they stored, showed and logged with what was served.
   * @throws if there is a difference
   */
  async function judge() {
    await rest();
    const samples = await scrapeAll();
    await Promise.all([...members].map((member) => end(member, 'SIGTERM')));
    // All listings at once can take long.
    await place.configure({ service: { timeout: '2m' } });
    await makeDue(place.directory);
    const last = start();
    if (!(await isServedInPeace())) found.push('the last daemon does not ask for some listings');
    const reader = await openReader(place.directory);
    // Failures that are still pending are settled.
    await until(async () => (await reader.snapshot()).backlog.count === 0, 500);
    await end(last, 'SIGTERM');
    const transitions = (await command('transitions', '--limit', ALL)) as readonly TransitionRow[];
    const failures = (await command('failures', '--limit', ALL)) as readonly FailureRow[];
    const statuses = (await command('status')) as readonly StatusRow[];
    const errorTotals = storedErrorTotals(await reader.snapshot());
    await reader.close();
    found.push(
      ...differences({
        journal,
        key: KEY,
        missingAfter: MISSING_AFTER,
        projects,
        runs,
        troubles,
        transitions,
        failures,
        statuses,
        samples,
        errorTotals,
        gave: living.gave,
      }),
      ...checkAgainstWorld(statuses, failures),
    );
    if (found.length > 0) {
      throw new Error(`${found.length} differences:\n${found.slice(0, 20).join('\n')}`);
    }
    return { listings: journal.length, transitions, failures };
  }

  /** Compares the store at rest with the prompts of the world, and finds failures that are pending without a reason. */
  function checkAgainstWorld(
    statuses: readonly StatusRow[],
    failures: readonly FailureRow[],
  ): readonly string[] {
    const shown = new Set(
      statuses.map((row) => JSON.stringify([row.project, row.prompt_id, row.status])),
    );
    const real = new Set(
      ids.flatMap((project) =>
        [...(living.world.prompts(project)?.values() ?? [])].map(({ id, status }) =>
          JSON.stringify([project, id, status]),
        ),
      ),
    );
    return [
      ...[...shown.difference(real)].map((row) => `shown, not so: ${row}`),
      ...[...real.difference(shown)].map((row) => `so, not shown: ${row}`),
      ...failures
        .filter((row) => !row.settled && living.hasErrorInfo(row.project, row.prompt_id))
        .map((row) => `not settled: ${JSON.stringify(row)}`),
    ];
  }

  const held = opened.move();
  return {
    place,
    projects,
    journal,
    members,
    runs,
    /** What is wrong so far. */
    found,
    start,
    end,
    scrapeOf,
    live,
    rest,
    judge,
    /** Scrapes a daemon unless it is killed meanwhile; a total that was scraped before must not be lost or smaller. */
    watch: async (member: Member, isWatched: (series: string) => boolean) => {
      try {
        const samples = await scrapeOf(member);
        found.push(...checkGrowth(before, samples).filter(isWatched));
        before = samples;
      } catch (error) {
        if (members.has(member)) found.push(`${member.name} was not scraped: ${String(error)}`);
      }
    },
    /** Marks the time until the returned function is called: the store may not be written. */
    trouble: () => {
      const span = { from: Date.now() - POLL_MS, to: Infinity };
      troubles.push(span);
      return () => {
        span.to = Date.now();
      };
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

/** Starts a service that keeps each listing that it has sent whole. */
async function startRecorded(world: World, seed: number) {
  const random = randomNumbers(seed);
  const keys = new Map([[KEY, undefined]]);
  const journal: JournalEntry[] = [];
  const lastItems = new Map<string, JournalEntry['items']>();
  let isFaulty = false;
  const service = await startService(async ({ path }, response) => {
    const producedAt = Date.now();
    const { req } = response;
    const answer = answerTo(req, world, keys);
    const now = answerTo({ ...UNCONDITIONAL, url: path }, world, keys);
    const request = { key: KEY, isConditional: req.headers['if-none-match'] !== undefined };
    const listing = listingIn(now, path);
    const read = await sendFaulty(
      response,
      { ...answer, listing },
      request,
      isFaulty ? random : undefined,
    );
    if (read === undefined || listing === undefined) return;
    const { project, kind } = listing;
    const items = read === 'last' ? lastItems.get(`${kind} ${project}`) : read.items;
    if (items === undefined) return;
    lastItems.set(`${kind} ${project}`, items);
    const times = { producedAt, finishedAt: Date.now() };
    const unchanged = response.statusCode === 304;
    journal.push({ seq: journal.length + 1, project, kind, ...times, unchanged, items });
  });
  return {
    url: service.url,
    journal: journal as readonly JournalEntry[],
    setFaulty: (value: boolean) => {
      isFaulty = value;
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

/** Checks that each project has series from exactly one worker, and that each worker reports how many it shows. */
function checkOwners(scrapes: readonly Samples[], projects: readonly string[]): readonly string[] {
  const shown = scrapes.map(
    (samples) =>
      new Set([...samples.keys()].map((series) => /[{,]project="([^"]+)"/.exec(series)?.[1])),
  );
  const owners = projects.flatMap((project) => {
    const count = shown.filter((some) => some.has(project)).length;
    return count === 1 ? [] : [`${count} daemons have series of ${project}`];
  });
  const counts = scrapes.flatMap((samples, index) => {
    const count = projects.filter((project) => shown[index]?.has(project)).length;
    const said = samples.get('evalwatch_worker_projects') ?? count;
    return said === count ? [] : [`a worker says that it has ${said} projects, and shows ${count}`];
  });
  return [...owners, ...counts];
}

import { setTimeout } from 'node:timers/promises';
import { ask } from '../../test/support/ask.ts';
import { answerTheDead, until } from '../../test/support/soak/disturbance.ts';
import { type Member, scrapeOf, settle, valueOf } from './crew.ts';
import type { Kind, Part } from './proxy.ts';
import type { Scene } from './scene.ts';

/** Maximum wait on a busy machine, ms. */
const PATIENCE_MS = 120_000;

/** Maximum wait for a good moment. */
const LONGEST_WAIT_MS = 10_000;

/**
 * Waits for a moment at which an end can do harm, as most are harmless. In turn: around the commits of a tick; between the
 * lines of a commit; between the line of a failure and its settlement. Resolves to a worker at that moment.
 */
async function waitForMoment({ crew, journal }: Scene, n: number): Promise<Member> {
  const { members } = crew;
  const some = members[n % members.length];
  if (some === undefined) throw new Error('nobody is there');
  const served = journal.length;
  const seen = members.map(({ run }) => run.lines.length);
  const teller = (event: string) =>
    members.find(({ run }, index) => {
      return run.lines.slice(seen[index]).some((line) => line.event === event);
    });
  const moments = [
    () => (journal.length > served ? some : undefined),
    () => teller('prompt.transition'),
    () => teller('prompt.failed'),
  ];
  const moment = moments[n % moments.length] ?? (() => some);
  let found: Member | undefined;
  await until(() => (found = moment()) !== undefined, LONGEST_WAIT_MS);
  if (n % moments.length === 0) await setTimeout((n * 7) % 16);
  return found ?? some;
}

/** Delay of answers, far longer than it takes to stop a worker after its request. */
const SLOW_MS = 2000;

/** Durations after a kill, ms. */
export interface Recovery {
  /** Time until living workers owned every project. */
  readonly owned: number;
  /** Time until a poll of every project was stored that began after the kill. */
  readonly polled: number;
}

/** Ends a worker by SIGKILL for the n-th time, waits until the others take over, and starts another one. */
export async function killOne(scene: Scene, n: number): Promise<Recovery> {
  const { crew, projects } = scene;
  const member = await waitForMoment(scene, n);
  const at = Date.now();
  await crew.kill(member);
  await answerTheDead();
  if (!(await until(() => crew.owned() === projects, PATIENCE_MS))) {
    throw new Error(`${crew.owned()} of ${projects} projects are owned after a kill`);
  }
  const owned = Date.now() - at;
  await polledSince(scene, at);
  const polled = Date.now() - at;
  await crew.join();
  await settle(crew, projects);
  return { owned, polled };
}

/** Waits until a poll of each project is stored that began after this time, epoch ms. */
async function polledSince({ servers }: Scene, at: number): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const left = await servers.notPolledSince(at);
    if (left === 0) return;
    if (Date.now() > deadline) throw new Error(`${left} projects are not polled any more`);
    await setTimeout(100);
  }
}

/**
 * Point at which a worker stops: while it polls, before its commit reaches the database, in the middle of that, or between
 * the line of a failure and the arrival of its settlement in the database.
 */
export type Place =
  'polling' | 'between diff and commit' | 'mid-statement' | 'between line and settlement';

export interface Stopped {
  readonly place: Place;
  /** Number of its commits that the database refused. */
  readonly refused: number;
}

/** Stops these workers by SIGSTOP, each at its place, until others do their work; then wakes them. */
export async function stopAt(
  scene: Scene,
  stops: readonly (readonly [Member, Place])[],
  forMs: number,
): Promise<readonly Stopped[]> {
  const { crew, projects } = scene;
  const stopping = await Promise.all(
    stops.map(async ([member, place]) => {
      const before = await valueOf(member, 'evalwatch_store_commits_refused_total');
      const wake = await stopAtPlace[place](scene, member);
      return { member, place, before, wake };
    }),
  );
  const stopped = new Set(stops.map(([member]) => member));
  const ownedByOthers = () =>
    crew.members
      .filter((member) => !stopped.has(member))
      .reduce((sum, member) => sum + member.owned(), 0);
  const [isTaken] = await Promise.all([
    until(() => ownedByOthers() === projects, PATIENCE_MS),
    setTimeout(forMs),
  ]);
  if (!isTaken) throw new Error(`${ownedByOthers()} of ${projects} projects are owned by others`);
  await polledSince(scene, Date.now());
  // They now send the requests that they were about to send, whose answers do not count.
  const over = scene.trouble();
  for (const { wake } of stopping) wake();
  await settle(crew, projects);
  over();
  return await Promise.all(
    stopping.map(async ({ member, place, before }) => ({
      place,
      refused: (await valueOf(member, 'evalwatch_store_commits_refused_total')) - before,
    })),
  );
}

/** Stops a worker while it waits for an answer, which the service delays. */
async function stopPolling(scene: Scene, member: Member): Promise<() => void> {
  const { samples } = await scrapeOf(member);
  const own = (project: string | undefined) =>
    samples.has(`evalwatch_project_next_poll_timestamp_seconds{project="${project}"}`);
  const hurry = scene.delayAnswers(SLOW_MS);
  const from = Date.now();
  const isAsked = await until(
    () => scene.requests.some(({ at, project }) => at >= from && own(project)),
    PATIENCE_MS,
  );
  const wake = scene.crew.stop(member);
  hurry();
  if (!isAsked) throw new Error(`${member.name} asks for nothing`);
  return wake;
}

function stopSending(kind: Kind, part: Part) {
  return async ({ crew }: Scene, member: Member): Promise<() => void> => {
    const held = await member.proxy.hold(kind, part);
    const wake = crew.stop(member);
    return () => {
      wake();
      held.release();
    };
  };
}

const stopAtPlace = {
  polling: stopPolling,
  'between diff and commit': stopSending('commit of a poll', 'none'),
  'mid-statement': stopSending('commit of a poll', 'half'),
  'between line and settlement': stopSending('settlement', 'none'),
} satisfies Readonly<Record<Place, unknown>>;

/** Replaces every worker in turn by one from `source`, or else from the crew's sources. */
export async function restartAll({ crew, projects }: Scene, source?: string): Promise<void> {
  for (const member of crew.members) {
    await crew.join(source);
    await crew.leave(member);
    await settle(crew, projects);
  }
}

export interface Outage {
  /** Time from the database's return until each project was polled again, ms. */
  readonly polled: number;
  readonly commitFailures: number;
}

/** Crashes the database for the n-th time and restarts it after `forMs`; the workers must stay up and report it. */
export async function crashDatabase(scene: Scene, n: number, forMs: number): Promise<Outage> {
  const { crew, servers } = scene;
  const over = scene.trouble();
  const failures = () =>
    Promise.all(
      crew.members.map((member) => valueOf(member, 'evalwatch_store_commit_failures_total')),
    );
  const before = await failures();
  await waitForMoment(scene, n);
  await servers.primary().kill();
  await setTimeout(forMs);
  const found: string[] = [];
  for (const { daemon, name } of crew.members) {
    const codes = await Promise.all(
      ['/metrics', '/-/healthy', '/-/ready'].map(
        async (path) => (await ask(`${daemon.url()}${path}`)).status,
      ),
    );
    if (codes.join() !== '200,200,503')
      found.push(`${name} answers ${codes.join()} without the database`);
  }
  const counted = (await failures()).map((count, index) => count - (before[index] ?? 0));
  if (counted.some((count) => count === 0)) found.push('a worker counts no failed commit');
  if (found.length > 0) throw new Error(found.join('; '));
  await servers.primary().start();
  const at = Date.now();
  await polledSince(scene, at);
  const polled = Date.now() - at;
  await settle(crew, scene.projects);
  over();
  return { polled, commitFailures: counted.reduce((sum, count) => sum + count, 0) };
}

/**
 * Kills the primary for the n-th time and promotes its standby; then a new standby takes the place of the primary. Returns
 * the time from the kill until each project was polled again, ms.
 */
export async function failOver(scene: Scene, n: number): Promise<number> {
  const { crew, servers } = scene;
  const over = scene.trouble();
  await waitForMoment(scene, n);
  const at = Date.now();
  await servers.failOver();
  await polledSince(scene, Date.now());
  const polled = Date.now() - at;
  await settle(crew, scene.projects);
  await servers.rebuild();
  over();
  return polled;
}

export interface Ticks {
  readonly ticks: number;
  /** Ticks in which a listing was requested more than once. */
  readonly doubled: readonly string[];
  /** Ticks in which a listing was not requested. */
  readonly missed: readonly string[];
}

/** Checks each whole interval between these two times, epoch ms. */
export function checkTicks(
  { journal, intervalMs }: Pick<Scene, 'journal' | 'intervalMs'>,
  from: number,
  to: number,
): Ticks {
  const first = Math.ceil(from / intervalMs);
  const last = Math.floor(to / intervalMs) - 1;
  const listings = Map.groupBy(journal, ({ kind, project }) => `${kind}s of ${project}`);
  const doubled: string[] = [];
  const missed: string[] = [];
  for (const [listing, entries] of listings) {
    const ticks = Map.groupBy(entries, ({ producedAt }) => Math.floor(producedAt / intervalMs));
    for (let tick = first; tick <= last; tick += 1) {
      const times = ticks.get(tick)?.map(({ producedAt }) => new Date(producedAt).toISOString());
      const at = new Date(tick * intervalMs).toISOString();
      if (times === undefined) missed.push(`${listing} at ${at}`);
      else if (times.length > 1) doubled.push(`${listing}: ${times.join(' and ')}`);
    }
  }
  return { ticks: listings.size * Math.max(0, last - first + 1), doubled, missed };
}

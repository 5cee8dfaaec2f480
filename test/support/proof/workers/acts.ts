import { setTimeout } from 'node:timers/promises';
import { ask } from '../../ask.ts';
import { answerTheDead, until } from '../../soak/disturbance.ts';
import { type Member, settle, valueOf } from './crew.ts';
import type { Part } from './proxy.ts';
import type { Scene } from './scene.ts';

/** On a machine that has much else to do, ms. */
const PATIENCE_MS = 120_000;

/** How long it took, ms. */
export interface Recovery {
  /** Until every project was owned by one that lives. */
  readonly owned: number;
  /** Until every project was polled again. */
  readonly polled: number;
}

/** Ends a worker by SIGKILL; the others take over, and another one takes its place. */
export async function killOne(scene: Scene, member: Member): Promise<Recovery> {
  const { crew, projects } = scene;
  const at = Date.now();
  await crew.kill(member);
  await answerTheDead();
  const served = scene.journal.length;
  if (!(await until(() => crew.owned() === projects, PATIENCE_MS))) {
    throw new Error(`${crew.owned()} of ${projects} projects are owned after a kill`);
  }
  const owned = Date.now() - at;
  await polledSince(scene, served);
  const polled = Date.now() - at;
  await crew.join();
  await settle(crew, projects);
  return { owned, polled };
}

/** Waits until each project was asked for again. */
async function polledSince(scene: Scene, served: number): Promise<void> {
  const polled = new Set<string>();
  let seen = served;
  const isDone = await until(() => {
    for (const { project } of scene.journal.slice(seen)) polled.add(project);
    seen = scene.journal.length;
    return polled.size === scene.projects;
  }, PATIENCE_MS);
  if (!isDone) throw new Error(`${polled.size} of ${scene.projects} projects are polled again`);
}

/** Where a worker stops: while it polls, before its commit has reached the database, or in the middle of that. */
export type Place = 'polling' | 'between diff and commit' | 'mid-statement';

export interface Stopped {
  readonly place: Place;
  /** Commits that the database refused it. */
  readonly refused: number;
}

/** Stops these workers by SIGSTOP, each at its place, until others do their work; then they wake up. */
export async function stopAt(
  scene: Scene,
  stops: readonly (readonly [Member, Place])[],
  forMs: number,
): Promise<readonly Stopped[]> {
  const { crew, projects } = scene;
  const stopping = await Promise.all(
    stops.map(async ([member, place]) => {
      const before = await valueOf(member, 'evalwatch_store_commits_refused_total');
      const wake =
        place === 'polling'
          ? await stopPolling(scene, member)
          : await stopCommitting(scene, member, place === 'mid-statement' ? 'half' : 'none');
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
  await polledSince(scene, scene.journal.length);
  // Requests that they were about to send go out now, and what they are answered counts for nothing.
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

/** Half way to an answer: the service takes its time. */
async function stopPolling({ crew, intervalMs }: Scene, member: Member): Promise<() => void> {
  await setTimeout(intervalMs - (Date.now() % intervalMs) + 2);
  return crew.stop(member);
}

async function stopCommitting({ crew }: Scene, member: Member, part: Part): Promise<() => void> {
  const held = await member.proxy.hold(part);
  const wake = crew.stop(member);
  return () => {
    wake();
    held.release();
  };
}

/** Every worker leaves in turn, and another one takes its place, of these sources or else the same. */
export async function restartAll({ crew, projects }: Scene, source?: string): Promise<void> {
  for (const member of crew.members) {
    await crew.join(source);
    await crew.leave(member);
    await settle(crew, projects);
  }
}

export interface Outage {
  /** From the database's return until each project was polled again, ms. */
  readonly polled: number;
  readonly commitFailures: number;
}

/** The database crashes and is away for so long; the workers stay up and say so. */
export async function crashDatabase(scene: Scene, forMs: number): Promise<Outage> {
  const { crew, servers } = scene;
  const over = scene.trouble();
  const failures = () =>
    Promise.all(
      crew.members.map((member) => valueOf(member, 'evalwatch_store_commit_failures_total')),
    );
  const before = await failures();
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
  await polledSince(scene, scene.journal.length);
  const polled = Date.now() - at;
  await settle(crew, scene.projects);
  over();
  return { polled, commitFailures: counted.reduce((sum, count) => sum + count, 0) };
}

/**
 * The server that takes writes is killed, and the one that follows it takes its place; then the first follows that one.
 * How long it took from the kill until each project was polled again, ms.
 */
export async function failOver(scene: Scene): Promise<number> {
  const { crew, servers } = scene;
  const over = scene.trouble();
  const at = Date.now();
  await servers.failOver();
  await polledSince(scene, scene.journal.length);
  const polled = Date.now() - at;
  await settle(crew, scene.projects);
  over();
  await servers.rebuild();
  return polled;
}

export interface Ticks {
  readonly ticks: number;
  /** Those that a listing was asked for more than once. */
  readonly doubled: readonly string[];
  /** Those that it was not asked for. */
  readonly missed: readonly string[];
}

/** Looks at each whole interval between these two times, epoch ms. */
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

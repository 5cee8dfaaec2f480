import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { systemClock } from '../../src/app/clock.ts';
import type { Store } from '../../src/monitor/ports/store.ts';
import type * as SqliteStore from '../../src/store/sqlite/sqlite-store.ts';
import type { Image } from './disk.ts';
import type { Acknowledgement } from './promises.ts';
import { FILES, STORE } from './recording.ts';

/** Rows that the store has promised to keep. */
export interface Promised {
  /** `transition_id prompt from to`, in order. */
  readonly transitions: readonly string[];
  readonly settled: ReadonlySet<number>;
}

/** Returns what is promised after 0, 1, 2 … calls. */
export function promisedAfter(acknowledgements: readonly Acknowledgement[]): readonly Promised[] {
  const states: Promised[] = [{ transitions: [], settled: new Set() }];
  for (const [what, ...rows] of acknowledgements) {
    const { transitions, settled } = states.at(-1) as Promised;
    states.push({
      transitions: what === 'committed' ? [...transitions, ...rows] : transitions,
      settled: what === 'settled' ? new Set([...settled, Number(rows[0])]) : settled,
    });
  }
  return states;
}

/** Writes the files of an image. Returns the store's path. */
export async function restore(image: Image, directory: string): Promise<string> {
  for (const name of [...FILES, `${STORE}-shm`]) await rm(join(directory, name), { force: true });
  for (const [name, content] of image) await writeFile(join(directory, name), content);
  return join(directory, STORE);
}

/**
 * Opens the store at `path` as the daemon does and compares it with what was promised before the power cut, with or without
 * the effect of the interrupted call. Returns what is wrong.
 */
export async function inspect(
  { openStore }: typeof SqliteStore,
  path: string,
  promised: readonly Promised[],
): Promise<string | undefined> {
  let found: Awaited<ReturnType<typeof read>>;
  try {
    const store = await openStore({ path, clock: systemClock, emit: () => {} });
    try {
      found = await read(store);
    } finally {
      await store.close();
    }
    const check = integrity(path);
    if (check !== 'ok') return `corrupt: ${check}`;
  } catch (error) {
    return `corrupt: ${String(error)}`;
  }
  if (promised.some((state) => isAsPromised(found, state))) return findContradiction(found);
  const before = promised[0]?.transitions.length;
  return `lost: ${before} transitions were promised, ${found.transitions.length} are there`;
}

async function read(store: Store) {
  return {
    transitions: (await store.transitions({})).toReversed(),
    failures: await store.failures({}),
    statuses: await store.statuses({}),
    snapshot: await store.snapshot(),
  };
}

type Found = Awaited<ReturnType<typeof read>>;

function isAsPromised({ transitions, failures }: Found, promised: Promised): boolean {
  const settled = failures.filter(({ settlement }) => settlement !== undefined);
  return (
    transitions.length === promised.transitions.length &&
    settled.length === promised.settled.size &&
    settled.every(({ transitionId }) => promised.settled.has(transitionId)) &&
    transitions.every(
      ({ transitionId, id, from, to }, index) =>
        [transitionId, id, from, to].join(' ') === promised.transitions[index],
    )
  );
}

/** Returns a contradiction to the transitions, from which all else follows. */
function findContradiction({ transitions, failures, statuses, snapshot }: Found) {
  const last = new Map(transitions.map(({ project, id, to }) => [`${project} ${id}`, to]));
  const shown = new Map(statuses.map((row) => [`${row.project} ${row.promptId}`, row.status]));
  for (const [prompt, status] of last) {
    if (shown.get(prompt) !== status) return `torn: ${prompt} is ${shown.get(prompt)}`;
  }
  const failed = transitions.filter(({ to }) => to === 'FAILED').length;
  if (failures.length !== failed) return `torn: ${failures.length} failures, ${failed} moves`;
  const total = snapshot.projects
    .flatMap(({ listings }) => listings.get('prompt')?.transitions ?? [])
    .reduce((sum, [, , count]) => sum + count, 0);
  if (total !== transitions.length) return `torn: totals ${total}, ${transitions.length} moves`;
  return undefined;
}

function integrity(path: string): string {
  const db = new Database(path, { readonly: true });
  try {
    return String(db.pragma('integrity_check', { simple: true }));
  } finally {
    db.close();
  }
}

import { isDeepStrictEqual } from 'node:util';
import Database from 'better-sqlite3';
import { join } from 'node:path';
import { systemClock } from '../../src/app/clock.ts';
import type * as SqliteReader from '../../src/store/sqlite/sqlite-reader.ts';
import type * as SqliteStore from '../../src/store/sqlite/sqlite-store.ts';
import type { Store, StoreReader } from '../../src/monitor/ports/store.ts';

export interface Stores {
  readonly openStore: typeof SqliteStore.openStore;
  readonly openReader: typeof SqliteReader.openReader;
}

export async function loadStores(source: string): Promise<Stores> {
  const { openStore } = (await import(
    join(source, 'store/sqlite/sqlite-store.ts')
  )) as typeof SqliteStore;
  const { openReader } = (await import(
    join(source, 'store/sqlite/sqlite-reader.ts')
  )) as typeof SqliteReader;
  return { openStore, openReader };
}

/** Everything read from a store, or the error of its refusal. */
export type Answer =
  { readonly rows: unknown; readonly isNew: boolean } | { readonly error: unknown };

/** Reads everything that commands and API read. */
export function askReader({ openReader }: Stores, path: string): Promise<Answer> {
  return ask(() => openReader({ path }), readAll);
}

/** Reads everything that the daemon reads before its first poll. */
export async function askStore({ openStore }: Stores, path: string): Promise<Answer> {
  let isNew = false;
  const open = () =>
    openStore({ path, clock: systemClock, emit: () => {}, onCreated: () => (isNew = true) });
  const answer = await ask(open, async (store: Store) => ({
    shown: await readAll(store),
    pending: await store.pendingFailures({ limitPerProject: 1_000_000 }),
    known: await Promise.all(
      (await store.projects()).map((project) => store.loadKnown(project, ['prompt', 'dataset'])),
    ),
  }));
  return 'rows' in answer ? { ...answer, isNew } : answer;
}

async function ask<Opened extends StoreReader>(
  open: () => Promise<Opened>,
  read: (opened: Opened) => Promise<unknown>,
): Promise<Answer> {
  try {
    const opened = await open();
    try {
      return { rows: await read(opened), isNew: false };
    } finally {
      await opened.close();
    }
  } catch (error) {
    return { error };
  }
}

async function readAll(reader: StoreReader): Promise<unknown> {
  return [
    await reader.projects(),
    await reader.snapshot(),
    await reader.statuses({}),
    await reader.transitions({}),
    await reader.failures({}),
  ];
}

export type Verdict = 'right' | 'refused' | 'wrong';

const HOW_TO_GO_ON =
  /restore a backup|move it away|run the newer evalwatch|the daemon creates it|start the daemon, or run poll|delete it while no daemon runs/;

/** @throws if the answer is neither rows nor an error with instructions */
export function judge(answer: Answer, intact: Answer): Verdict {
  if ('rows' in answer) {
    return 'rows' in intact && isDeepStrictEqual(answer.rows, intact.rows) ? 'right' : 'wrong';
  }
  const { error } = answer;
  if (error instanceof Error && error.name === 'StoreError' && HOW_TO_GO_ON.test(error.message)) {
    return 'refused';
  }
  throw new Error(`no clear refusal: ${String(error)}`, { cause: error });
}

/** Whether SQLite itself would find the damage if it looked at every page. */
export function isFoundBySqlite(path: string): boolean {
  const db = new Database(path);
  try {
    return db.pragma('integrity_check', { simple: true }) !== 'ok';
  } catch {
    return true;
  } finally {
    db.close();
  }
}

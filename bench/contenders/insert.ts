import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { OpenContender } from './contender.ts';
import { collecting, floor } from './floors.ts';

interface Item {
  readonly id: string;
  readonly status: string;
  readonly name: string;
  readonly timestamp: string;
}

/** Downloads, parses and inserts the raw items into an empty table, in one transaction as durable as the daemon's. */
export const insert: OpenContender = async (task) => {
  const db = new Database(join(task.directory, 'floor.db'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec(`CREATE TABLE prompt (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, name TEXT, timestamp TEXT, since INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`);
  const row = db.prepare('INSERT INTO prompt VALUES (?, ?, ?, ?, ?)');
  const insertAll = db.transaction((items: readonly Item[]) => {
    const now = Date.now();
    for (const { id, status, name, timestamp } of items) row.run(id, status, name, timestamp, now);
  });
  const polling = await floor(() =>
    collecting((body) => {
      const items = JSON.parse(body.toString()) as Item[];
      insertAll.immediate(items);
      return { prompts: items.length };
    }),
  )(task);
  return {
    poll: () => polling.poll(),
    close: async () => {
      await polling.close();
      db.close();
    },
  };
};

import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { makeDurable } from '../../../../src/store/sqlite/file.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const FULL = 2;

it('every opened database has a write-ahead log and synchronous=FULL', async () => {
  await using directory = await temporaryDirectory();
  for (let opening = 0; opening < 3; opening += 1) {
    const db = new Database(join(directory.path, 'store.db'));
    makeDurable(db);
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
    expect(db.pragma('synchronous', { simple: true })).toBe(FULL);
    db.close();
  }
});

it('opening fails if the database cannot have a write-ahead log', () => {
  const db = new Database(':memory:');
  expect(() => makeDurable(db)).toThrow('needs journal_mode wal and synchronous 2, and has memory');
});

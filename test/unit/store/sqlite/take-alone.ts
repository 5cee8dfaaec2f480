/** Locks the database of the first argument exclusively. Prints `taken` or the error. */
import { writeSync } from 'node:fs';
import Database from 'better-sqlite3';

const db = new Database(process.argv[2], { timeout: 10 });
try {
  db.pragma('locking_mode = EXCLUSIVE');
  db.prepare('SELECT count(*) FROM project').get();
  writeSync(1, 'taken\n');
} catch (error) {
  writeSync(1, `${String(error)}\n`);
}
db.close();

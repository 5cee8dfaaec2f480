import { stat } from 'node:fs/promises';
import { connect } from './connection.ts';
import { StoreError } from '../../monitor/errors.ts';
import { assertIntact, withStoreErrors } from './errors.ts';
import { assertNotOwn } from './file/own-files.ts';
import { openReadable } from './sqlite-reader.ts';
import { fileSize } from './file/store-file.ts';
import { writeWhole } from './file/whole-file.ts';

export interface BackupOptions {
  /** Path of the store. */
  readonly path: string;
  /** Path of the copy, which is a store itself. */
  readonly target: string;
  /** Whether an existing `target` may be replaced, which happens once the copy is complete. */
  readonly replace: boolean;
}

/**
 * Copies the store as of one moment, beside a daemon or without one. The copy is verified and on the disk before it gets its
 * name, so that a file of this name is never incomplete.
 * @returns the size of the copy in bytes
 * @throws {StoreError} about the store, about a damaged copy, or about a `target` that exists, belongs to the store or has a
 * log beside it
 * @throws {Error} with a system `code` when the copy cannot be written
 */
export async function backUp({ path, target, replace }: BackupOptions): Promise<number> {
  await assertNotOwn(path, target);
  await assertNoLog(target);
  const { db, close } = await openReadable(path, 'earlier too');
  try {
    await withStoreErrors(path, () => assertIntact(db, path));
    await writeWhole(target, replace, async ({ path: copy }) => {
      // VACUUM reads in one transaction; sqlite3_backup would start again after each commit of the daemon.
      await withStoreErrors(path, () => db.prepare('VACUUM INTO ?').run(copy));
      await verify(copy);
    });
  } finally {
    close();
  }
  return (await stat(target)).size;
}

/** Rejects a target with the log or journal of another store beside it: SQLite would apply it to the copy. */
async function assertNoLog(target: string): Promise<void> {
  for (const log of [`${target}-wal`, `${target}-journal`]) {
    if ((await fileSize(log)) === 0) continue;
    throw new StoreError(
      'other',
      `${log} would damage the copy: choose another name, or remove it if no program uses it`,
    );
  }
}

async function verify(copy: string): Promise<void> {
  const db = connect(copy, { readonly: true, busyTimeoutMs: 0 });
  try {
    await withStoreErrors(copy, () => assertIntact(db, copy));
  } finally {
    db.close();
  }
}

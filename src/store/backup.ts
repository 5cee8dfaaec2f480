import { realpath, stat } from 'node:fs/promises';
import { StoreError } from '../monitor/errors.ts';
import { connect } from './connection.ts';
import { assertIntact, isSystemError, withStoreErrors } from './errors.ts';
import { openReadable } from './sqlite-reader.ts';
import { writeWhole } from './whole-file.ts';

export interface BackupOptions {
  /** The store. */
  readonly path: string;
  /** The copy, which is a store itself. */
  readonly target: string;
  /** Whether an existing `target` may be replaced; it is, only once the copy is complete. */
  readonly replace: boolean;
}

/**
 * Copies the store as it is at one moment, beside a daemon or without one. The copy is looked through and on the disk
 * before it gets its name, so that under this name there is never half of one.
 * @returns its size in bytes
 * @throws {StoreError} of the store, of a copy that came out damaged, or of a `target` that exists or is the store
 * @throws {Error} with a system `code` when the copy cannot be written
 */
export async function backUp({ path, target, replace }: BackupOptions): Promise<number> {
  if (await isSameFile(path, target))
    throw new StoreError('other', `${target} is the store itself`);
  const { db, close } = await openReadable(path);
  try {
    await withStoreErrors(path, () => assertIntact(db, path));
    await writeWhole(target, replace, async (copy) => {
      // One read transaction, where sqlite3_backup starts again with each commit of the daemon.
      await withStoreErrors(path, () => db.prepare('VACUUM INTO ?').run(copy));
      await verify(copy);
    });
  } finally {
    close();
  }
  return (await stat(target)).size;
}

async function isSameFile(path: string, target: string): Promise<boolean> {
  try {
    return (await realpath(path)) === (await realpath(target));
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false;
    throw error;
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

import { open, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { StoreError } from '../monitor/errors.ts';
import { connect, disconnect } from './connection.ts';
import { assertIntact, isSystemError, withStoreErrors } from './errors.ts';
import { openReadable } from './sqlite-reader.ts';
import { createPrivately } from './store-file.ts';

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
  const db = await openReadable(path);
  const copy = `${target}.partial-${process.pid}`;
  try {
    const reserved = !replace && (await reserve(target));
    try {
      await withStoreErrors(path, () => assertIntact(db, path));
      await createPrivately(copy);
      // One read transaction, where sqlite3_backup starts again with each commit of the daemon.
      await withStoreErrors(path, () => db.prepare('VACUUM INTO ?').run(copy));
      await verify(copy);
      await sync(copy);
      await rename(copy, target);
    } catch (error) {
      await rm(copy, { force: true });
      if (reserved) await rm(target, { force: true });
      throw error;
    }
  } finally {
    disconnect(db);
  }
  await sync(dirname(resolve(target)));
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

/** Takes the name, so that nobody else's file of this name can be lost. */
async function reserve(target: string): Promise<true> {
  try {
    await (await open(target, 'wx', 0o600)).close();
    return true;
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
    throw new StoreError(
      'other',
      `${target} exists: choose another name, or replace it by --force`,
    );
  }
}

async function verify(copy: string): Promise<void> {
  const db = connect(copy, { readonly: true, busyTimeoutMs: 0 });
  try {
    await withStoreErrors(copy, () => assertIntact(db, copy));
  } finally {
    disconnect(db);
  }
}

async function sync(path: string): Promise<void> {
  await using file = await open(path, 'r');
  await file.sync();
}

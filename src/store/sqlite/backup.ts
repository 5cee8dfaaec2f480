import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { lstat, open, realpath, rename, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { StoreError } from '../../monitor/errors.ts';
import { connect } from './connection.ts';
import { assertIntact, isSystemError, withStoreErrors } from './errors.ts';
import { fileSize } from './file.ts';
import { findStore, openReadable } from './sqlite-reader.ts';

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
  await assertFree(path, target, replace);
  const { db, close } = await openReadable(path, 'earlier too');
  const draft = `${target}.partial-${randomBytes(6).toString('hex')}`;
  const removeDraft = () => rmSync(draft, { force: true });
  // A signal ends the process by `process.exit`.
  process.once('exit', removeDraft);
  try {
    // SQLite fills a file that is empty, and keeps who may read it.
    await using file = await open(draft, 'wx', 0o600);
    // VACUUM reads in one transaction; sqlite3_backup would start again after each commit of the daemon.
    await withStoreErrors(path, () => {
      assertIntact(db, path);
      db.prepare('VACUUM INTO ?').run(draft);
    });
    await withStoreErrors(target, () => verify(draft));
    await file.sync();
    await rename(draft, target);
  } finally {
    removeDraft();
    process.off('exit', removeDraft);
    close();
  }
  await syncDirectory(dirname(target));
  return (await stat(target)).size;
}

/**
 * @throws {StoreError} about a target that is a file of the store, or exists and may not be replaced, or has the log or journal
 * of another store beside it, which SQLite would apply to the copy
 */
async function assertFree(path: string, target: string, replace: boolean): Promise<void> {
  const store = await findStore(path);
  const name = join(await realpath(dirname(target)), basename(target));
  const file = await realpath(target).catch(() => name);
  for (const suffix of ['', '-wal', '-shm', '-journal', '.lock']) {
    if (name !== store + suffix && file !== store + suffix) continue;
    const what = suffix === '' ? 'the store itself' : `the store's ${suffix} file`;
    throw new StoreError('other', `${target} is ${what}: choose another name`);
  }
  const found = await (replace ? stat : lstat)(target).catch((error: unknown) => {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (found !== undefined && !replace) {
    throw new StoreError(
      'other',
      `${target} exists: choose another name, or replace it by --force`,
    );
  }
  // A device such as /dev/null must stay one.
  if (found?.isFile() === false) {
    throw new StoreError('other', `${target} is not a file: choose another name`);
  }
  for (const log of [`${target}-wal`, `${target}-journal`]) {
    if ((await fileSize(log)) === 0) continue;
    throw new StoreError(
      'other',
      `${log} would damage the copy: stop the daemon (if it was killed, start it first), or choose another name`,
    );
  }
}

function verify(copy: string): void {
  const db = connect(copy, { readonly: true, busyTimeoutMs: 0 });
  try {
    assertIntact(db, copy);
  } finally {
    db.close();
  }
}

/** Makes the name of the copy survive a loss of power, where the file system can promise that. */
async function syncDirectory(path: string): Promise<void> {
  try {
    await using directory = await open(path, 'r');
    await directory.sync();
  } catch {
    // CIFS, FUSE, and directories that cannot be read.
  }
}

import { readFile } from 'node:fs/promises';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { StoreError } from '../../../../src/monitor/errors.ts';
import { toStoreError } from '../../../../src/store/sqlite/errors.ts';

describe('toStoreError', () => {
  it.each([
    ['SQLITE_FULL', 'full'],
    ['SQLITE_IOERR', 'io'],
    ['SQLITE_IOERR_FSYNC', 'io'],
    ['SQLITE_CANTOPEN_ISDIR', 'io'],
    ['SQLITE_READONLY_DBMOVED', 'io'],
    ['SQLITE_BUSY', 'busy'],
    ['SQLITE_BUSY_SNAPSHOT', 'busy'],
    ['SQLITE_LOCKED', 'busy'],
    ['SQLITE_CORRUPT_INDEX', 'corrupt'],
    ['SQLITE_NOTADB', 'corrupt'],
    ['SQLITE_CONSTRAINT_UNIQUE', 'other'],
    ['SQLITE_ERROR', 'other'],
  ])('maps %s to the reason %s', (code, reason) => {
    const cause = new Database.SqliteError('as SQLite says it', code);
    const error = toStoreError(cause, '/data/store.db');
    expect(error).toMatchObject({ name: 'StoreError', reason, cause });
    expect(error.message).toContain('(/data/store.db: as SQLite says it)');
  });

  it.each([
    ['SQLITE_IOERR_LOCK', 'its file system seems to have no file locks'],
    ['SQLITE_IOERR_SHMLOCK', 'its file system seems to have no file locks'],
    ['SQLITE_IOERR_SHMMAP', 'its file system seems to have no shared memory (mmap)'],
    ['SQLITE_READONLY_CANTINIT', 'the file or its file system is read-only'],
    ['SQLITE_CANTOPEN', 'its directory or file system may be read-only'],
  ])('names the file system as the likely cause of %s', (code, cause) => {
    const { message } = toStoreError(new Database.SqliteError('disk I/O error', code), 'x');
    expect(message).toContain(`the store cannot be read or written: ${cause}`);
  });

  it.each([
    ['ENOSPC', 'full'],
    ['EDQUOT', 'full'],
    ['EACCES', 'io'],
    ['EROFS', 'io'],
  ])('maps a system call that fails with %s to the reason %s', (code, reason) => {
    const cause = Object.assign(new Error(code), { code, syscall: 'open' });
    expect(toStoreError(cause, '/data/store.db').reason).toBe(reason);
  });

  it('recognizes a real error of a system call', async () => {
    const cause: unknown = await readFile('/nowhere/at/all').catch((error: unknown) => error);
    expect(toStoreError(cause, 'x').reason).toBe('io');
  });

  it('returns a StoreError and throws a bug, both unchanged', () => {
    const error = new StoreError('busy', 'held');
    expect(toStoreError(error, 'x')).toBe(error);
    const bugs = [new TypeError('bug'), new Error('never'), 'text', undefined];
    for (const bug of bugs) expect(thrownBy(() => toStoreError(bug, 'x'))).toBe(bug);
  });

  it('maps an unknown code to the reason other', () => {
    const cause = Object.assign(new Error('too long'), { code: 'ERR_STRING_TOO_LONG' });
    expect(toStoreError(cause, 'x').reason).toBe('other');
  });
});

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

import type { Connection } from './connection.ts';
import { isBug, StoreError, type StoreFailureReason } from '../../monitor/errors.ts';

/** Reasons that an error code stands for. */
type CodedReason = Exclude<StoreFailureReason, 'replaced'>;

/** Reason by SQLite's primary result code or the system's code. */
const REASONS: ReadonlyMap<string, CodedReason> = new Map([
  ['SQLITE_FULL', 'full'],
  ['ENOSPC', 'full'],
  ['EDQUOT', 'full'],
  ['SQLITE_IOERR', 'io'],
  ['SQLITE_CANTOPEN', 'io'],
  ['SQLITE_READONLY', 'io'],
  ['SQLITE_PERM', 'io'],
  ['SQLITE_BUSY', 'busy'],
  ['SQLITE_LOCKED', 'busy'],
  ['SQLITE_PROTOCOL', 'busy'],
  ['SQLITE_CORRUPT', 'corrupt'],
  ['SQLITE_NOTADB', 'corrupt'],
]);

const TEXTS: Readonly<Record<CodedReason, string>> = {
  full: 'no space is left for the store',
  io: 'the store cannot be read or written',
  busy: 'the store is held by another program, or its file system has no file locks',
  corrupt:
    'the store is damaged; restore a backup, or move it away with its -wal and -shm files to start anew',
  other: 'the store failed',
};

/** Likely causes by SQLite's extended result code. Network drives, FUSE and read-only mounts lack what SQLite needs. */
const CAUSES: readonly (readonly [codes: RegExp, cause: string])[] = [
  [
    /^SQLITE_(?:IOERR_\w*LOCK|PERM)$/,
    'its file system seems to have no file locks; put it on a local disk',
  ],
  [
    /^SQLITE_IOERR_SHMMAP$/,
    'its file system seems to have no shared memory (mmap); put it on a local disk',
  ],
  [
    /^SQLITE_READONLY(?!_DBMOVED)/,
    'the file or its file system is read-only; let evalwatch write to it',
  ],
  [
    /^SQLITE_CANTOPEN$/,
    'its directory or file system may be read-only, and SQLite needs files beside it; let evalwatch write there',
  ],
];

/**
 * Turns an error of SQLite or of the file system about the store at `path` into a {@link StoreError} (docs/metrics.md#store).
 * @throws the error itself if it is neither theirs nor a StoreError: a bug
 */
export function toStoreError(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  if (isBug(error)) throw error;
  const reason = reasonOf(error);
  const message = error instanceof Error ? error.message : String(error);
  const [, cause] = CAUSES.find(([codes]) => codes.test(codeOf(error))) ?? [];
  const what = cause === undefined ? TEXTS[reason] : `${TEXTS[reason]}: ${cause}`;
  return new StoreError(reason, `${what} (${path}: ${message})`, error);
}

/**
 * Checks every page, which takes 0.7 s for 100,000 prompts with 200,000 transitions. Does not find damage inside a value.
 * @throws {StoreError} `corrupt`
 */
export function assertIntact(db: Connection, path: string): void {
  const found = String(db.pragma('integrity_check(1)', { simple: true }));
  if (found === 'ok') return;
  throw new StoreError('corrupt', `${TEXTS.corrupt} (${path}: ${found})`);
}

/** Runs `work`. @throws {StoreError} for errors of SQLite and the file system */
export async function withStoreErrors<Result>(
  path: string,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw toStoreError(error, path);
  }
}

/** Whether SQLite failed with this primary result code. */
export function isSqliteError(error: unknown, code: string): boolean {
  return primaryCode(codeOf(error)) === code;
}

/** Whether a system call failed with this code. */
export function isSystemError(error: unknown, code: string): boolean {
  return error instanceof Error && 'syscall' in error && codeOf(error) === code;
}

function reasonOf(error: unknown): CodedReason {
  const code = codeOf(error);
  if (code.startsWith('SQLITE_')) return REASONS.get(primaryCode(code)) ?? 'other';
  if (error instanceof Error && 'syscall' in error) return REASONS.get(code) ?? 'io';
  return 'other';
}

/** Returns the code of an error of SQLite or of the system; empty for other errors. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Returns `SQLITE_IOERR` for `SQLITE_IOERR_FSYNC`. */
function primaryCode(code: string): string {
  return code.split('_', 2).join('_');
}

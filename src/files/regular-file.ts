import { closeSync, constants, fstatSync, openSync, readSync, statSync, type Stats } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { queueFileWork } from './thread-work.ts';

/**
 * Content of a file, or the reason why it was not read: a system error code such as `ENOENT` or `EISDIR`, `NOT_REGULAR` (a
 * pipe, a socket or a device), `TOO_LARGE`, or `OVERDUE` if reading took too long.
 */
export type FileContent =
  | { readonly bytes: Buffer; readonly fault?: never; readonly cause?: never }
  /** `cause` is the system's error, if there was one. */
  | { readonly fault: string; readonly cause?: unknown; readonly bytes?: never };

/** With these flags, opening does not wait for the writer of a pipe and does not acquire a controlling terminal. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const PIECE_BYTES = 64 * 1024;

/**
 * Reads a regular file of at most `maxBytes` within 5 s, following symbolic links. Checks the kind first and refuses pipes,
 * sockets and devices; a directory is opened, and reading it fails with EISDIR. A file that grows while it is read is read
 * up to the limit.
 */
export async function readRegularFile(path: string, maxBytes: number): Promise<FileContent> {
  try {
    return (await queueFileWork(() => readThrough(path, maxBytes))) ?? { fault: 'OVERDUE' };
  } catch (error) {
    return refusedBySystem(error);
  }
}

async function readThrough(path: string, maxBytes: number): Promise<FileContent> {
  const refused = refusalOf(await stat(path), maxBytes);
  if (refused !== undefined) return { fault: refused };
  await using file = await open(path, FLAGS);
  const refusedAfterOpen = refusalOf(await file.stat(), maxBytes);
  if (refusedAfterOpen !== undefined) return { fault: refusedAfterOpen };
  const pieces: Buffer[] = [];
  for (let left = maxBytes + 1; left > 0;) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(left, PIECE_BYTES)));
    if (bytesRead === 0) return { bytes: Buffer.concat(pieces) };
    pieces.push(buffer.subarray(0, bytesRead));
    left -= bytesRead;
  }
  return { fault: 'TOO_LARGE' };
}

/** Like {@link readRegularFile}, but blocking and without a time limit: for small files on local file systems only. */
export function readRegularFileSync(path: string, maxBytes: number): FileContent {
  try {
    const refused = refusalOf(statSync(path), maxBytes);
    if (refused !== undefined) return { fault: refused };
    const file = openSync(path, FLAGS);
    try {
      const refusedAfterOpen = refusalOf(fstatSync(file), maxBytes);
      if (refusedAfterOpen !== undefined) return { fault: refusedAfterOpen };
      const bytes = Buffer.alloc(maxBytes + 1);
      let length = 0;
      while (length <= maxBytes) {
        const read = readSync(file, bytes, length, bytes.length - length, null);
        if (read === 0) return { bytes: bytes.subarray(0, length) };
        length += read;
      }
      return { fault: 'TOO_LARGE' };
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return refusedBySystem(error);
  }
}

function refusalOf(stats: Stats, maxBytes: number): string | undefined {
  // Opening a directory works, and reading it fails with EISDIR.
  if (stats.isDirectory()) return undefined;
  if (!stats.isFile()) return 'NOT_REGULAR';
  return stats.size > maxBytes ? 'TOO_LARGE' : undefined;
}

function refusedBySystem(error: unknown): FileContent {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  return { fault: code, cause: error };
}

const FAULTS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['ENOTDIR', 'there is no such file'],
  ['EISDIR', 'this is a directory, not a file'],
  ['ELOOP', 'the symbolic links of this path form a loop'],
  ['NOT_REGULAR', 'this is a pipe, a socket or a device, and only regular files are read'],
  ['OVERDUE', 'the file could not be read within 5 s: its file system does not answer'],
]);

/** Returns a sentence about the fault of a {@link FileContent}. */
export function describeFault(fault: string): string {
  if (fault === 'EACCES' || fault === 'EPERM') return describeDenial();
  return FAULTS.get(fault) ?? `reading the file failed (${fault})`;
}

/** Names the user: in a container, it is rarely the one who wrote the file. */
function describeDenial(): string {
  const [user, group] = [process.geteuid?.(), process.getegid?.()];
  return (
    `permission denied for user ${user}, group ${group}: give the file to that user (chown ${user}) ` +
    `or to the group (chgrp ${group} and chmod 640), and let the user enter the directories above it`
  );
}

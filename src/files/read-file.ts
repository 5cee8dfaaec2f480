import { readFileSync, statSync } from 'node:fs';

/**
 * Content of a file, or why it was not read: a system error code such as `ENOENT`, `EISDIR`, `NOT_REGULAR` (a pipe, a socket or
 * a device), or `TOO_LARGE`.
 */
export type FileContent =
  | { readonly bytes: Buffer; readonly fault?: never }
  | { readonly fault: string; readonly bytes?: never };

/** The text of a file, or a sentence about why it cannot be read. */
export type TextFile =
  | { readonly text: string; readonly fault?: never }
  | { readonly fault: string; readonly text?: never };

/**
 * Reads a regular file of at most `maxBytes`, following symbolic links. It blocks: the files are small, and by way of the thread
 * pool a read costs five times as much as the request that needs it.
 */
export function readFile(path: string, maxBytes: number): FileContent {
  try {
    const stats = statSync(path);
    // A pipe would block until something writes to it.
    if (!stats.isFile()) return { fault: stats.isDirectory() ? 'EISDIR' : 'NOT_REGULAR' };
    if (stats.size > maxBytes) return { fault: 'TOO_LARGE' };
    const bytes = readFileSync(path);
    return bytes.length > maxBytes ? { fault: 'TOO_LARGE' } : { bytes };
  } catch (error) {
    return { fault: error instanceof Error && 'code' in error ? String(error.code) : 'unknown' };
  }
}

/** Reads a regular UTF-8 file of at most `maxBytes`. */
export function readTextFile(path: string, maxBytes: number): TextFile {
  const { bytes, fault } = readFile(path, maxBytes);
  if (fault === 'TOO_LARGE') return { fault: `the file is larger than ${maxBytes} bytes` };
  if (fault !== undefined) return { fault: describeFault(fault) };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { fault: 'the file is not UTF-8 text' };
  }
}

const FAULTS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['ENOTDIR', 'there is no such file'],
  ['EISDIR', 'this is a directory, not a file'],
  ['ELOOP', 'the symbolic links of this path form a loop'],
  ['NOT_REGULAR', 'this is a pipe, a socket or a device, and only regular files are read'],
]);

/** Returns a sentence about the fault of a {@link FileContent}. */
export function describeFault(fault: string): string {
  if (fault === 'EACCES' || fault === 'EPERM') {
    // Names the user: in a container, it is rarely the one who wrote the file.
    const [user, group] = [process.geteuid?.(), process.getegid?.()];
    return (
      `permission denied for user ${user}, group ${group}: give the file to that user (chown ${user}) ` +
      `or to the group (chgrp ${group} and chmod 640), and let the user enter the directories above it`
    );
  }
  return FAULTS.get(fault) ?? `reading the file failed (${fault})`;
}

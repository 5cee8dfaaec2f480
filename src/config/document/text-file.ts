import { readRegularFile } from '../../files/regular-file.ts';

/** The text of a file, or a sentence about why it cannot be read. */
export type TextFile =
  | { readonly text: string; readonly fault?: never; readonly cause?: never }
  /** `cause` is set if reading the file failed. */
  | { readonly fault: string; readonly cause?: unknown; readonly text?: never };

const FAULTS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['ENOTDIR', 'there is no such file'],
  ['EACCES', 'permission denied: check the permissions of the file and its directories'],
  ['EPERM', 'permission denied: check the permissions of the file and its directories'],
  ['EISDIR', 'this is a directory, not a file'],
  ['ELOOP', 'the symbolic links of this path form a loop'],
  ['NOT_REGULAR', 'this is a pipe, a socket or a device, and only regular files are read'],
  ['OVERDUE', 'the file could not be read within 5 s: its file system does not answer'],
]);

/** Reads a regular UTF-8 file of at most `maxBytes`, within 5 s. */
export async function readTextFile(path: string, maxBytes: number): Promise<TextFile> {
  const { bytes, fault, cause } = await readRegularFile(path, maxBytes);
  if (fault === 'TOO_LARGE') return { fault: `the file is larger than ${maxBytes} bytes` };
  if (fault !== undefined) {
    return { fault: FAULTS.get(fault) ?? `reading the file failed (${fault})`, cause };
  }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { fault: 'the file is not UTF-8 text' };
  }
}

import { createReadStream } from 'node:fs';

/** The text of a file, or why there is none, in plain words. */
export type TextFile =
  | { readonly text: string; readonly fault?: never; readonly cause?: never }
  /** With a `cause` if the file could not be read at all. */
  | { readonly fault: string; readonly cause?: unknown; readonly text?: never };

const FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'the file may not be read: check its permissions',
  EPERM: 'the file may not be read: check its permissions',
  EISDIR: 'this is a directory, not a file',
  ELOOP: 'the symbolic links of this path lead in a circle',
};

/** Reads a UTF-8 file of at most `maxBytes`, and not a byte more of a larger one. */
export async function readTextFile(path: string, maxBytes: number): Promise<TextFile> {
  let bytes: Buffer;
  try {
    bytes = Buffer.concat(await createReadStream(path, { end: maxBytes }).toArray());
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return { fault: FAULTS[code] ?? `the file cannot be read (${code})`, cause: error };
  }
  if (bytes.length > maxBytes) return { fault: `the file is larger than ${maxBytes} bytes` };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { fault: 'the file is not UTF-8 text' };
  }
}

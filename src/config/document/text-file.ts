import { describeFault, readRegularFile } from '../../files/regular-file.ts';

/** The text of a file, or a sentence about why it cannot be read. */
export type TextFile =
  | { readonly text: string; readonly fault?: never; readonly cause?: never }
  /** `cause` is set if reading the file failed. */
  | { readonly fault: string; readonly cause?: unknown; readonly text?: never };

/** Reads a regular UTF-8 file of at most `maxBytes`, within 5 s. */
export async function readTextFile(path: string, maxBytes: number): Promise<TextFile> {
  const { bytes, fault, cause } = await readRegularFile(path, maxBytes);
  if (fault === 'TOO_LARGE') return { fault: `the file is larger than ${maxBytes} bytes` };
  if (fault !== undefined) {
    return { fault: describeFault(fault), cause };
  }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { fault: 'the file is not UTF-8 text' };
  }
}

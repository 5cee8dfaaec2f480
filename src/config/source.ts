import { createHash } from 'node:crypto';
import { readTextFile } from '../files/read-file.ts';

/** A file whose content is part of a configuration. */
export interface Source {
  /** Absolute. */
  readonly path: string;
  /** Identifies the content that was read. */
  readonly digest: string;
}

/** What the files of a configuration contain now. */
export interface SourcesNow {
  /** Equal texts mean equal contents, or the same reasons why files cannot be read. */
  readonly content: string;
  readonly isReadable: boolean;
}

/** Largest file that a configuration reads: the limit of `ca_file`. */
const MAX_BYTES = 16 * 1024 * 1024;

export function toSource(path: string, text: string): Source {
  return { path, digest: createHash('sha256').update(text).digest('base64') };
}

/** Returns the content of these files when they were read, to compare with {@link readSources}. */
export function contentOf(sources: readonly Source[]): string {
  return sources.map(({ digest }) => digest).join('\n');
}

/** Reads the files again, within 5 s. */
export async function readSources(sources: readonly Pick<Source, 'path'>[]): Promise<SourcesNow> {
  const digests: string[] = [];
  let isReadable = true;
  for (const { path } of sources) {
    // One after the other: a file system that hangs takes one thread, not one for each file.
    const { text, fault } = readTextFile(path, MAX_BYTES);
    if (fault === undefined) digests.push(toSource(path, text).digest);
    else {
      digests.push(fault);
      isReadable = false;
    }
  }
  return { content: digests.join('\n'), isReadable };
}

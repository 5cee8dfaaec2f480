import { basename } from 'node:path';
import { findFileMounts, readMounts, type Mounts } from '../files/mounts.ts';
import type { Logger } from '../log/logger.ts';

export interface MountedFiles {
  /**
   * Checks these files (absolute paths) and logs once for each: that it is a single-file mount, that the file was replaced
   * on the host (this process then reads the old file until it restarts), or that the file was moved to another directory on
   * the host. Resolves to the replaced files.
   */
  check(files: readonly string[]): Promise<readonly string[]>;
  /** Whether the last check found a single-file mount. Otherwise no further check is needed. */
  hasAny(): boolean;
}

export interface MountedFilesOptions {
  readonly logger: Logger;
  readonly read?: () => Promise<Mounts>;
}

export function watchMountedFiles({
  logger,
  read = readMounts,
}: MountedFilesOptions): MountedFiles {
  /** Source of each mount when it was first seen, by the path of the file. */
  const first = new Map<string, string>();
  const replaced = new Set<string>();
  const moved = new Set<string>();
  let current: Mounts = new Map();

  function isReplaced([path, source]: readonly [string, string]): boolean {
    // The source of a deleted file ends in //deleted; a file that an editor moved away has another name.
    return source.endsWith('//deleted') || basename(source) !== basename(first.get(path) ?? '');
  }

  function isMoved([path, source]: readonly [string, string]): boolean {
    return !isReplaced([path, source]) && source !== first.get(path);
  }

  /** Returns the paths that were not logged yet, and adds them to `logged`. */
  function unlogged(paths: readonly string[], logged: Set<string>): readonly string[] {
    const added = paths.filter((path) => !logged.has(path));
    for (const path of added) logged.add(path);
    return added;
  }

  return {
    check: async (files) => {
      current = await findFileMounts(files, await read());
      const added = [...current.keys()].filter((path) => !first.has(path));
      for (const [path, source] of current) if (!first.has(path)) first.set(path, source);
      if (added.length > 0) {
        const text = 'File is a single-file mount, replacements are not visible';
        logger.warn({ event: 'config.file_mounted', paths: added }, text);
      }
      const elsewhere = unlogged(
        [...current].filter(isMoved).map(([path]) => path),
        moved,
      );
      if (elsewhere.length > 0) {
        logger.warn({ event: 'config.file_moved', paths: elsewhere }, 'Mounted file was moved');
      }
      const paths = [...current].filter(isReplaced).map(([path]) => path);
      const gone = unlogged(paths, replaced);
      if (gone.length > 0) {
        logger.error({ event: 'config.file_replaced', paths: gone }, 'Mounted file was replaced');
      }
      return paths;
    },
    hasAny: () => current.size > 0,
  };
}

import { basename } from 'node:path';
import { findFileMounts, readMounts, type Mounts } from '../files/mounts.ts';
import type { Logger } from '../log/logger.ts';

export interface MountedFiles {
  /**
   * Logs once for each of these files (absolute) that it is a mount of its own, and once that it was replaced since: another
   * file has its name outside, and this process sees the old one until it is restarted. Resolves to those that were. Logs
   * once, too, that one is in another directory outside, which says nothing of whether anything took its place.
   */
  look(files: readonly string[]): Promise<readonly string[]>;
  /** Whether a file of the last look is a mount of its own: the others need no further look. */
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
  /** What was mounted when it was first seen, by the path of the file. */
  const first = new Map<string, string>();
  const replaced = new Set<string>();
  const moved = new Set<string>();
  let current: Mounts = new Map();

  function isReplaced([path, source]: readonly [string, string]): boolean {
    // What was deleted is shown so; what was moved away, as editors do with the one before, has another name.
    return source.endsWith('//deleted') || basename(source) !== basename(first.get(path) ?? '');
  }

  function isMoved([path, source]: readonly [string, string]): boolean {
    return !isReplaced([path, source]) && source !== first.get(path);
  }

  /** Returns the paths that are not in `told` yet, and adds them. */
  function news(paths: readonly string[], told: Set<string>): readonly string[] {
    const added = paths.filter((path) => !told.has(path));
    for (const path of added) told.add(path);
    return added;
  }

  return {
    look: async (files) => {
      current = await findFileMounts(files, await read());
      const added = [...current.keys()].filter((path) => !first.has(path));
      for (const [path, source] of current) if (!first.has(path)) first.set(path, source);
      if (added.length > 0) {
        logger.warn({ event: 'config.file_mounted', paths: added }, 'File is mounted by itself');
      }
      const elsewhere = news(
        [...current].filter(isMoved).map(([path]) => path),
        moved,
      );
      if (elsewhere.length > 0) {
        logger.warn({ event: 'config.file_moved', paths: elsewhere }, 'Mounted file was moved');
      }
      const paths = [...current].filter(isReplaced).map(([path]) => path);
      const gone = news(paths, replaced);
      if (gone.length > 0) {
        logger.error({ event: 'config.file_replaced', paths: gone }, 'Mounted file was replaced');
      }
      return paths;
    },
    hasAny: () => current.size > 0,
  };
}

import { statSync } from 'node:fs';
import { StoreError } from '../../../monitor/errors.ts';

/**
 * Returns device and inode of the file that a path leads to; undefined if there is none. Never opens it: closing any
 * descriptor of a store releases SQLite's locks on it.
 * @throws {Error} with a system `code`
 */
export function identify(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.dev}:${stats.ino}`;
}

/**
 * Records which files these paths lead to. The returned function checks that they still do, with one `stat` for each.
 * @throws {StoreError} `replaced`, naming the path that leads elsewhere
 */
export function rememberFiles(paths: readonly string[]): () => void {
  const files = new Map(paths.map((path) => [path, identify(path)]));
  return () => {
    for (const [path, file] of files) {
      const found = identify(path);
      if (found === file) continue;
      const what = found === undefined ? 'is no longer there' : 'is another file now';
      throw new StoreError(
        'replaced',
        `the store is not what was opened: ${path} ${what}; move it back, or start evalwatch again to go on with what is there`,
      );
    }
  };
}

import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { queueFileWork } from './thread-work.ts';

/** Mounts of this process: the mounted path by its mount point. */
export type Mounts = ReadonlyMap<string, string>;

/** Reads the mounts of this process; empty on systems other than Linux. */
export async function readMounts(): Promise<Mounts> {
  return parseMounts(await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''));
}

/** Parses the format of proc_pid_mountinfo(5). */
export function parseMounts(text: string): Mounts {
  return new Map(
    text.split('\n').flatMap((line) => {
      const [, , , root, point] = line.split(' ');
      return root === undefined || point === undefined ? [] : [[decode(point), decode(root)]];
    }),
  );
}

/** Returns the files (absolute paths) that are single-file mounts, with the source of each mount. */
export async function findFileMounts(paths: readonly string[], mounts: Mounts): Promise<Mounts> {
  const found = new Map<string, string>();
  const directories = new Map<string, string>();
  for (const path of mounts.size === 0 ? [] : paths) {
    const parent = dirname(path);
    // One after the other: a file system that hangs takes one thread, not one for each file.
    const directory = directories.get(parent) ?? (await resolveDirectory(parent));
    directories.set(parent, directory);
    const source = mounts.get(join(directory, basename(path)));
    if (source !== undefined) found.set(path, source);
  }
  return found;
}

async function resolveDirectory(path: string): Promise<string> {
  return (await queueFileWork(() => realpath(path)).catch(() => undefined)) ?? path;
}

/** Decodes the octal escapes of spaces, tabs, line breaks and backslashes. */
function decode(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}

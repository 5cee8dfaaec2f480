import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Directories of control groups of both versions, and the file of their limit. */
const ROOTS = [
  ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'],
  ['/sys/fs/cgroup', 'memory.max'],
] as const;

/** Control group that limits the memory of its processes like that of a container. */
export interface MemoryLimit extends AsyncDisposable {
  /** Shell command after which the shell, and what it starts, is in the group. */
  readonly enter: string;
}

/** Creates the group; returns undefined where that is not allowed. */
export async function limitMemory(bytes: number): Promise<MemoryLimit | undefined> {
  const name = `evalwatch-proof-${process.pid}`;
  for (const [root, limit] of ROOTS) {
    const group = join(root, name);
    try {
      await mkdir(group);
      await writeFile(join(group, limit), String(bytes));
      return {
        enter: `echo $$ > ${join(group, 'cgroup.procs')}`,
        [Symbol.asyncDispose]: () => rmdir(group),
      };
    } catch {
      await rmdir(group).catch(() => {});
    }
  }
  return undefined;
}

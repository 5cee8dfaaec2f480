import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Where control groups of both versions are, and the name of their limit. */
const ROOTS = [
  ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'],
  ['/sys/fs/cgroup', 'memory.max'],
] as const;

/** A control group that limits the memory of the processes in it, as that of a container. */
export interface MemoryLimit extends AsyncDisposable {
  /** Whoever is started by a shell that has run this is in the group. */
  readonly enter: string;
}

/** Makes the group; undefined where that is not allowed. */
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

import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A directory with one key file that is replaced like in Kubernetes: `key` is a link through `..data` to a directory. */
export interface MountedSecret {
  readonly directory: string;
  replace(key: string): Promise<void>;
}

export async function createMountedSecret(directory: string, key: string): Promise<MountedSecret> {
  let version = 0;
  const write = async (text: string) => {
    version += 1;
    await mkdir(join(directory, `..v${version}`), { mode: 0o755 });
    await writeFile(join(directory, `..v${version}`, 'key'), `${text}\n`, { mode: 0o644 });
    await symlink(`..v${version}`, join(directory, '..next'));
    await rename(join(directory, '..next'), join(directory, '..data'));
    await rm(join(directory, `..v${version - 1}`), { recursive: true, force: true });
  };
  await mkdir(directory, { mode: 0o755 });
  await write(key);
  await symlink('..data/key', join(directory, 'key'));
  return { directory, replace: write };
}

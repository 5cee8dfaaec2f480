import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface LockedPackage {
  readonly version: string;
  readonly license?: string;
  readonly dev?: true;
  readonly optional?: true;
  readonly devOptional?: true;
}

export const root = join(import.meta.dirname, '..');

/** Returns the packages of the lockfile that the image contains, with paths such as `node_modules/pino`. */
export async function shippedPackages(): Promise<readonly (readonly [string, LockedPackage])[]> {
  const lockfile = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, LockedPackage>>;
  };
  return Object.entries(lockfile.packages).filter(
    ([path, { dev, optional, devOptional }]) => path !== '' && !dev && !optional && !devOptional,
  );
}

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import Database from 'better-sqlite3';
import type { Trouble } from '../../test/support/soak/disturbance.ts';

const DISK_BYTES = 16 * 1024 * 1024;

/** Mounts a small file system until the result is disposed; returns undefined where that is not allowed. */
export function mountSmallDisk(directory: string): Disposable | undefined {
  const options = ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`];
  if (!run('mount', ...options, 'tmpfs', directory)) return undefined;
  return { [Symbol.dispose]: () => void run('umount', '--lazy', directory) };
}

function run(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args).status === 0;
}

/** Fills the disk of the store. */
export function filling(directory: string): Trouble {
  const filler = join(directory, 'filler');
  return async () => {
    // A long WAL is overwritten in place, and needs no space.
    const db = new Database(join(directory, 'evalwatch.db'));
    db.pragma('wal_checkpoint(TRUNCATE)');
    db.close();
    await writeFile(filler, Buffer.alloc(DISK_BYTES)).catch(() => {});
    return () => rm(filler);
  };
}

/**
 * Returns a trouble in which some of the daemon's writes and fsyncs fail: in each round at other places of its transactions,
 * alternately with EIO and ENOSPC.
 */
export function failing(strace: string, pid: number): Trouble {
  return async (round) => {
    const when = `${1 + (round % 7)}+${2 + (round % 5)}`;
    const calls = ['pwrite64', 'fsync', 'pwrite64,fsync'][round % 3] ?? '';
    const error = round % 2 === 0 ? 'EIO' : 'ENOSPC';
    const child = spawn(
      strace,
      ['-qq', '-f', '-o', '/dev/null', '-p', String(pid), '-e', `trace=${calls}`].concat(
        '-e',
        `inject=${calls}:error=${error}:when=${when}`,
      ),
      { stdio: 'inherit' },
    );
    const ended = once(child, 'close');
    await setTimeout(500);
    return async () => {
      child.kill('SIGINT');
      await ended;
    };
  };
}

import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { callsOf, EVERY_THREAD } from '../strace.ts';
import type { Acknowledgement } from './promises.ts';

/** Disk operation of the workload, or an acknowledgement that it printed. `file` is a name in the store's directory. */
export type Step =
  | { readonly type: 'create' | 'remove' | 'sync'; readonly file: string }
  | { readonly type: 'write'; readonly file: string; readonly at: number; readonly data: Buffer }
  | { readonly type: 'truncate'; readonly file: string; readonly size: number }
  | { readonly type: 'sync directory' }
  | { readonly type: 'acknowledge'; readonly acknowledgement: Acknowledgement };

const WORKLOAD = fileURLToPath(new URL('workload.ts', import.meta.url));
export const STORE = 'store.db';
/** All files but the shared memory, which does not survive a restart. */
export const FILES: ReadonlySet<string> = new Set(
  [STORE, `${STORE}.lock`].flatMap((name) => [name, `${name}-wal`, `${name}-journal`]),
);
const CALLS = 'openat,pwrite64,write,fsync,fdatasync,ftruncate,unlink,rename';

/** Runs the workload under strace, which follows the thread that SQLite works in. */
export async function record(
  strace: string,
  source: string,
  rounds: number,
): Promise<readonly Step[]> {
  await using directory = await temporaryDirectory();
  const trace = join(directory.path, 'trace');
  const store = join(directory.path, 'data', STORE);
  execFileSync(
    strace,
    [...EVERY_THREAD, '-o', trace, '-xx', '-s', '1000000', '-e', `trace=${CALLS}`].concat(
      [process.execPath, WORKLOAD, source, store],
      String(rounds),
    ),
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      // Keeps the writes of the compile cache out of the trace.
      env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' },
    },
  );
  return toSteps(callsOf(await readFile(trace, 'latin1')), dirname(store));
}

function toSteps(lines: readonly string[], directory: string): readonly Step[] {
  const paths = new Map<string, string>();
  const existing = new Set<string>();
  return lines.flatMap((line): readonly Step[] => {
    const [, call, args, result = ''] = /^(\w+)\((.*)\) += (-?\d+)/.exec(line) ?? [];
    if (call === undefined || args === undefined || result.startsWith('-')) return [];
    const [descriptor = '', ...rest] = args.split(', ');
    if (call === 'openat') {
      const path = decode(rest[0] ?? '').toString();
      paths.set(result, path);
      const file = basename(path);
      if (dirname(path) !== directory || !FILES.has(file) || existing.has(file)) return [];
      existing.add(file);
      return [{ type: 'create', file }];
    }
    if (call === 'unlink') {
      const file = basename(decode(descriptor).toString());
      return existing.delete(file) ? [{ type: 'remove', file }] : [];
    }
    if (call === 'rename') throw new Error('the model of the disk knows no renaming');
    if (call === 'write') return descriptor === '1' ? toAcknowledgement(decode(rest[0] ?? '')) : [];
    const path = paths.get(descriptor) ?? '';
    if (path === directory) return [{ type: 'sync directory' }];
    const file = basename(path);
    if (dirname(path) !== directory || !FILES.has(file)) return [];
    if (call === 'ftruncate') return [{ type: 'truncate', file, size: Number(rest[0]) }];
    if (call !== 'pwrite64') return [{ type: 'sync', file }];
    // Less may have been written than was asked for.
    const data = decode(rest[0] ?? '').subarray(0, Number(result));
    return [{ type: 'write', file, at: Number(rest[2]), data }];
  });
}

/** Decodes a text that strace quotes as `"\x12\x34"`. */
function decode(quoted: string): Buffer {
  if (quoted.endsWith('...')) throw new Error('strace cut a write short');
  return Buffer.from(quoted.slice(1, -1).replaceAll('\\x', ''), 'hex');
}

function toAcknowledgement(line: Buffer): readonly Step[] {
  return [{ type: 'acknowledge', acknowledgement: JSON.parse(line.toString()) as Acknowledgement }];
}

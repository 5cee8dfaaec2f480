import { spawnSync } from 'node:child_process';
import { rmSync, readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Line } from './judge.ts';

const WORKLOAD = fileURLToPath(new URL('workload.ts', import.meta.url));
/** Calls that change the disk: between two of them a statement changes memory only. */
export const CALLS = ['pwrite64', 'fsync', 'ftruncate', 'unlink'] as const;
/** What a power cut is replayed from: the calls above, those that name their files, and those that store nothing. */
const RECORDED = [...CALLS, 'openat', 'write', 'fdatasync', 'rename'];

/** Rounds of the workload, from the first to before the second. */
export type Rounds = readonly [from: number, to: number];

export interface Run {
  readonly lines: readonly Line[];
  /** The calls, in the order in which they ended, each without its thread. */
  readonly calls: readonly string[];
}

/** Returns the workload on these sources. */
export function workloadOn(strace: string, source: string) {
  function play(path: string, rounds: Rounds, tracer: readonly string[] = []): readonly Line[] {
    const command = [...tracer, process.execPath, WORKLOAD, source, path, ...rounds.map(String)];
    const { stdout, stderr, status, signal } = spawnSync(command[0] ?? '', command.slice(1), {
      encoding: 'utf8',
      maxBuffer: 1024 ** 3,
      // Keeps the writes of the compile cache out of the trace.
      env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' },
    });
    if (status !== 0 && signal !== 'SIGKILL') throw new Error(`the workload failed: ${stderr}`);
    const lines = stdout.split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as Line);
  }

  function traced(path: string, rounds: Rounds, names: readonly string[], more: readonly string[]) {
    const file = `${path}.trace`;
    // (With --seccomp-bpf, some kills do not happen.)
    const options = ['-f', '-o', file, '-e', `trace=${names.join()}`, ...more];
    const lines = play(path, rounds, [strace, ...options]);
    const calls = callsOf(readFileSync(file, 'latin1'));
    rmSync(file);
    return { lines, calls };
  }

  return {
    /** Plays these rounds of the workload. */
    play: (path: string, rounds: Rounds) => play(path, rounds),
    /** Plays them while strace disturbs the calls, if `inject` says how: in each thread by itself. */
    trace: (path: string, rounds: Rounds, inject?: string): Run =>
      traced(path, rounds, CALLS, inject === undefined ? [] : ['-e', `inject=${inject}`]),
    /** Plays them and returns every call that a power cut is replayed from. */
    record: (path: string, rounds: Rounds): readonly string[] =>
      traced(path, rounds, RECORDED, ['-xx', '-s', '1000000']).calls,
  };
}

/** Returns the calls of a trace of several threads, each in one line and without its thread. */
function callsOf(trace: string): readonly string[] {
  const unfinished = new Map<string, string>();
  return trace.split('\n').flatMap((line) => {
    const [, thread = '', call = line] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const [, begun] = /^(.*) <unfinished \.\.\.>$/.exec(call) ?? [];
    if (begun !== undefined) {
      unfinished.set(thread, begun);
      return [];
    }
    const [, rest] = /^<\.\.\. \w+ resumed>(.*)$/.exec(call) ?? [];
    return [rest === undefined ? call : (unfinished.get(thread) ?? '') + rest];
  });
}

/** Change of the disk, or a line of the workload. `file` is a name in the store's directory. */
export type Step =
  | { readonly type: 'create' | 'remove' | 'sync'; readonly file: string }
  | { readonly type: 'write'; readonly file: string; readonly at: number; readonly data: Buffer }
  | { readonly type: 'truncate'; readonly file: string; readonly size: number }
  | { readonly type: 'sync directory' }
  | { readonly type: 'tell'; readonly line: Line };

/** Returns the steps of recorded calls on the store at `path`, without its shared memory, which no restart reads. */
export function toSteps(calls: readonly string[], path: string): readonly Step[] {
  const directory = dirname(path);
  const paths = new Map<string, string>();
  const existing = new Set<string>();
  const isStored = (file: string) => dirname(file) === directory && !file.endsWith('-shm');
  return calls.flatMap((text): readonly Step[] => {
    const [, call, args, result = ''] = /^(\w+)\((.*)\) += (-?\d+)/.exec(text) ?? [];
    if (call === undefined || args === undefined || result.startsWith('-')) return [];
    const [first = '', ...rest] = args.split(', ');
    if (call === 'openat') {
      const opened = decode(rest[0] ?? '').toString();
      paths.set(result, opened);
      if (!isStored(opened) || existing.has(opened)) return [];
      existing.add(opened);
      return [{ type: 'create', file: basename(opened) }];
    }
    if (call === 'unlink') {
      const removed = decode(first).toString();
      return existing.delete(removed) ? [{ type: 'remove', file: basename(removed) }] : [];
    }
    if (call === 'rename') throw new Error('the model of the disk knows no renaming');
    if (call === 'write') {
      if (first !== '1') return [];
      return [{ type: 'tell', line: JSON.parse(decode(rest[0] ?? '').toString()) as Line }];
    }
    const changed = paths.get(first) ?? '';
    if (changed === directory) return [{ type: 'sync directory' }];
    if (!isStored(changed)) return [];
    const file = basename(changed);
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

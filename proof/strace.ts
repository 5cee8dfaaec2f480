import { debianTool } from '../test/support/debian-tool.ts';

/** Returns the path of strace, installed if missing; undefined, after a warning, if unavailable. @throws in CI instead */
export function findStrace(): string | undefined {
  const path = debianTool('strace', 'strace');
  if (path === undefined) skip('strace is not to be had');
  return path;
}

/** Warns that something is not proved here. @throws in CI, where everything must be proved */
export function skip(why: string): void {
  if (process.env['CI'] === 'true') throw new Error(`not proved: ${why}`);
  console.warn(`SKIPPED, not proved: ${why}`);
}

/** Option to follow every thread; each counts its own calls. (With --seccomp-bpf, some kills do not happen.) */
export const EVERY_THREAD = ['-f'];

/** Returns the calls of such a trace, in the order in which they ended, each in one line and without its thread. */
export function callsOf(trace: string): readonly string[] {
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

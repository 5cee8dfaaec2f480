import { debianTool } from '../test/support/debian-tool.ts';
import { required } from './row.ts';

/** Returns the path of strace, installed if missing. @throws {Unavailable} if that is not possible */
export function findStrace(): string {
  return required('strace', debianTool('strace', 'strace'));
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

import { clearTimeout, setTimeout } from 'node:timers';

/** Longer than a file system takes that does not hang. */
const MAX_MS = 5000;

let last: Promise<unknown> = Promise.resolve();
let underWay = 0;
/** Whether the work whose turn it is has been given up. */
let isHanging = false;

/**
 * Does one piece of file work of this process after the other; resolves to undefined for one that has not ended within
 * 5 s, its wait included, and at once for what comes behind it. A system call that hangs cannot be cancelled, and would
 * otherwise use up the threads that passwords, decompression and host names need, too: this way it holds one of them.
 */
export async function queueFileWork<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  if (isHanging) return undefined;
  let isGivenUp = false;
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => {
      isGivenUp = true;
      isHanging = true;
      resolve(undefined);
    }, MAX_MS);
  });
  underWay += 1;
  const turn = last.then(async () => (isGivenUp ? undefined : await work()));
  last = turn.then(onEnd, onEnd);
  try {
    return await Promise.race([turn, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** The result of work that other threads may do for as long as they like: the end of the process does not wait for it. */
export async function trackWork<Result>(work: Promise<Result>): Promise<Result> {
  underWay += 1;
  try {
    return await work;
  } finally {
    underWay -= 1;
  }
}

/**
 * Ends the process at once, after its `exit` listeners. While work of other threads is under way, another program takes the
 * place of this one: `process.exit` would wait for the thread that does it, however long it hangs.
 */
export function exit(code: number): void {
  if (underWay === 0 && !isPoolBusy()) process.exit(code);
  process.emit('exit', code);
  process.execve?.(process.execPath, [process.execPath, '--eval', `process.exit(${code})`], {});
}

/** Whether a thread of the pool may be held up by a file system or a name server. */
function isPoolBusy(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^(?:FSReq|GetAddrInfo)/.test(name));
}

/** Whether such work still goes on: the process would not end by itself before it. */
export function hasPendingWork(): boolean {
  return underWay > 0;
}

function onEnd(): void {
  underWay -= 1;
  isHanging = false;
}

import { clearInterval, setInterval } from 'node:timers';

/**
 * Number of seconds after which file work, including its wait, counts as hanging. They are counted one by one: a process that
 * was stopped, or got no processor, learns of an answer only after its timers.
 */
const MAX_WORK_SECONDS = 5;

let last: Promise<unknown> = Promise.resolve();
let pendingCount = 0;
/** Whether the work at the head of the queue has exceeded its time. */
let isHanging = false;

/**
 * Runs file work one after the other. Resolves to undefined if the work has not ended 5 s after the call. Until the work
 * ends, further calls resolve to undefined at once. A hanging system call cannot be cancelled; the queue limits it to one
 * thread of the pool, which password hashing, decompression and DNS lookups also use.
 */
export async function queueFileWork<Result>(
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  if (isHanging) return undefined;
  let isGivenUp = false;
  let seconds = 0;
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<undefined>((resolve) => {
    timer = setInterval(() => {
      seconds += 1;
      if (seconds < MAX_WORK_SECONDS) return;
      isGivenUp = true;
      isHanging = true;
      resolve(undefined);
    }, 1000);
  });
  pendingCount += 1;
  const turn = last.then(async () => (isGivenUp ? undefined : await work()));
  last = turn.then(onEnd, onEnd);
  try {
    return await Promise.race([turn, deadline]);
  } finally {
    clearInterval(timer);
  }
}

/** Tracks work of other threads, so that `exit` does not wait for it. Returns its result. */
export async function trackWork<Result>(work: Promise<Result>): Promise<Result> {
  pendingCount += 1;
  try {
    return await work;
  } finally {
    pendingCount -= 1;
  }
}

/**
 * Ends the process at once, after its `exit` listeners. While other threads are working, the process replaces itself with a
 * program that exits with the same code: `process.exit` would wait for a thread that hangs.
 */
export function exit(code: number): void {
  if (pendingCount === 0 && !isPoolBusy()) process.exit(code);
  process.emit('exit', code);
  process.execve?.(process.execPath, [process.execPath, '--eval', `process.exit(${code})`], {});
}

/** Returns whether a file system or a name server may be blocking a thread of the pool. */
function isPoolBusy(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^(?:FSReq|GetAddrInfo)/.test(name));
}

/** Returns whether tracked or queued work has not ended; until then the process does not end by itself. */
export function hasPendingWork(): boolean {
  return pendingCount > 0;
}

function onEnd(): void {
  pendingCount -= 1;
  isHanging = false;
}

/** Minimum time in which announcements are combined, ms: a busy monitor does not wake each client for each commit. */
const MIN_GATHER_MS = 50;
/** Additional time for each waiting client, ms. Writing to a client takes a tenth of it. */
const GATHER_MS_PER_CLIENT = 1;

/** Wakes the clients that wait for new events. */
export interface News {
  /** Number of announcements so far. */
  version(): number;
  announce(): void;
  /** Waits for an announcement after `seen`: resolves to false if `ms` pass, or the signal aborts, without one. */
  wait(seen: number, ms: number, signal: AbortSignal): Promise<boolean>;
}

export interface NewsOptions {
  /** Interval of announcements while a client waits, for a store whose commits are not all announced here. */
  readonly intervalMs: number | undefined;
  /** Called at each announcement, before clients wake. */
  readonly onAnnouncement: () => void;
}

export function createNews({ intervalMs, onAnnouncement }: NewsOptions): News {
  const waiting = new Set<() => void>();
  let version = 0;
  let gathering: NodeJS.Timeout | undefined;
  let announcing: NodeJS.Timeout | undefined;

  function announce(): void {
    version += 1;
    onAnnouncement();
    if (waiting.size > 0) gather();
  }

  function gather(): void {
    const ms = Math.max(MIN_GATHER_MS, waiting.size * GATHER_MS_PER_CLIENT);
    gathering ??= setTimeout(wakeAll, ms);
  }

  function wakeAll(): void {
    gathering = undefined;
    for (const wake of waiting) wake();
  }

  async function wait(seen: number, ms: number, signal: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const wake = () => resolve(true);
    const giveUp = () => resolve(false);
    const timer = setTimeout(giveUp, ms);
    waiting.add(wake);
    if (intervalMs !== undefined) announcing ??= setInterval(announce, intervalMs);
    if (seen !== version) gather();
    signal.addEventListener('abort', giveUp);
    if (signal.aborted) giveUp();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      waiting.delete(wake);
      if (waiting.size === 0) {
        clearInterval(announcing);
        announcing = undefined;
      }
      signal.removeEventListener('abort', giveUp);
    }
  }

  return { version: () => version, announce, wait };
}

/** Virtual time of a process: its clocks and timers advance only by these methods. */
export interface VirtualTime {
  /** Monotonic ms. */
  readonly monotonic: () => number;
  /** Advances both clocks. Timers fire in order, each followed by the work that it starts. */
  pass(ms: number): Promise<void>;
  /** Sets the wall clock forward or back. */
  jump(ms: number): void;
  /** Suspends the process: both clocks advance, timers are late. */
  stop(ms: number): void;
  set(now: number): void;
}

interface Timer {
  at: number;
  readonly order: number;
  readonly every: number | undefined;
  readonly work: () => void;
}

/** Replaces Date, performance.now and the timers. Must be called before modules that use them are loaded. */
export function installVirtualTime(): VirtualTime {
  const flush = setImmediate;
  const RealDate = Date;
  const timers = new Set<Timer>();
  let monotonic = 0;
  let offset = 0;
  let made = 0;
  const now = () => Math.floor(offset + monotonic);

  class VirtualDate extends RealDate {
    constructor(...parameters: []) {
      super(...((parameters.length === 0 ? [now()] : parameters) as unknown as []));
    }
    static override now(): number {
      return now();
    }
  }

  function start(work: () => void, ms: number, repeats: boolean) {
    const delay = Math.max(1, ms || 1);
    made += 1;
    const timer = {
      at: monotonic + delay,
      order: made,
      every: repeats ? delay : undefined,
      work,
      ref: () => timer,
      unref: () => timer,
      hasRef: () => true,
    };
    timers.add(timer);
    return timer;
  }
  const end = (timer: unknown) => void timers.delete(timer as Timer);
  Object.assign(globalThis, {
    Date: VirtualDate,
    setTimeout: (work: () => void, ms: number) => start(work, ms, false),
    setInterval: (work: () => void, ms: number) => start(work, ms, true),
    clearTimeout: end,
    clearInterval: end,
  });
  performance.now = () => monotonic;

  function next(until: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of timers) {
      if (timer.at > until) continue;
      if (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) {
        first = timer;
      }
    }
    return first;
  }

  return {
    monotonic: () => monotonic,
    pass: async (ms) => {
      const until = monotonic + ms;
      for (let timer = next(until); timer !== undefined; timer = next(until)) {
        monotonic = Math.max(monotonic, timer.at);
        if (timer.every === undefined) timers.delete(timer);
        else timer.at = monotonic + timer.every;
        timer.work();
        await new Promise((resolve) => {
          flush(resolve);
        });
      }
      monotonic = until;
    },
    jump: (ms) => {
      offset += ms;
    },
    stop: (ms) => {
      monotonic += ms;
    },
    set: (at) => {
      offset = at - monotonic;
    },
  };
}

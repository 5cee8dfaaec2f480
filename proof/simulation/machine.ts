import type { Clock, Timer } from '../../src/monitor/ports/clock.ts';
import type { Kernel } from './kernel.ts';

interface SetBack {
  readonly at: number;
  readonly ms: number;
}

/** Wall time at the start of a run: a Monday. */
export const START = Date.UTC(2030, 0, 7);
/** How late a timer can be, ms: usually less than the first, seldom up to the second. */
const USUAL_DELAY_MS = 1.5;
const RARE_DELAY_MS = 400;

/** One process of the simulation: its clocks, and whether it lives. Callbacks that are due during a pause run after it. */
export type Machine = ReturnType<typeof createMachine>;

/** @param wallOffset how far the machine's wall clock is off, ms */
export function createMachine(
  kernel: Kernel,
  name: string,
  { wallOffset, drift }: { readonly wallOffset: number; readonly drift: number },
) {
  const bornAt = kernel.now();
  let offset = wallOffset;
  let isAlive = true;
  let isPaused = false;
  let timers = 0;
  /** Callbacks that became due during a pause, in order. */
  let late: (() => void)[] = [];
  const setBacks: SetBack[] = [];

  const monotonic = () => 1000 + (kernel.now() - bornAt) * drift;

  /** Calls back in this process after `ms` of true time, unless it is dead by then. Returns the function that cancels it. */
  function after(ms: number, run: () => void): () => void {
    let isCancelled = false;
    const due = () => {
      if (!isAlive || isCancelled) return;
      if (isPaused) late.push(due);
      else run();
    };
    const cancel = kernel.after(ms, due);
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  function lateness(): number {
    return kernel.random() * (kernel.chance(0.0005) ? RARE_DELAY_MS : USUAL_DELAY_MS);
  }

  /** Starts a timer. Like those of Node, it counts whole milliseconds, and at least one. */
  function start(ms: number, repeats: boolean, callback: () => void): Timer {
    const wait = ms >= 1 && ms <= 0x7f_ff_ff_ff ? Math.trunc(ms) : 1;
    let isWaiting = true;
    let keepsAlive = true;
    let cancel = arm();
    timers += 1;

    function arm(): () => void {
      return after(wait / drift + lateness(), () => {
        if (repeats) cancel = arm();
        else end();
        callback();
      });
    }

    function end(): void {
      if (!isWaiting) return;
      isWaiting = false;
      if (keepsAlive) timers -= 1;
    }

    const timer: Timer = {
      cancel: () => {
        if (isWaiting) cancel();
        end();
      },
      unref: () => {
        if (isWaiting && keepsAlive) timers -= 1;
        keepsAlive = false;
        return timer;
      },
    };
    return timer;
  }

  const clock: Clock = {
    now: () => Math.floor(START + kernel.now() * drift + offset),
    monotonic,
    timeout: (ms, callback) => start(ms, false, callback),
    every: (ms, callback) => start(ms, true, callback),
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const timer = start(ms, false, resolve);
      const abort = () => reject(signal?.reason);
      signal?.addEventListener('abort', abort, { once: true });
      try {
        await promise;
      } finally {
        timer.cancel();
        signal?.removeEventListener('abort', abort);
      }
    },
  };

  return {
    name,
    clock,
    isAlive: () => isAlive,
    isPaused: () => isPaused,
    after,
    /** Sets the wall clock forward or back. */
    jump: (ms: number) => {
      offset += ms;
      if (ms < 0) setBacks.push({ at: kernel.now(), ms: -ms });
    },
    /** Returns the times since then at which the wall clock was set back, in virtual time, and by how much, ms. */
    setBacksSince: (at: number) => setBacks.filter((each) => each.at >= at),
    pause: () => {
      isPaused = true;
    },
    resume: () => {
      isPaused = false;
      const due = late;
      late = [];
      for (const run of due) kernel.after(0, () => (isAlive ? run() : undefined));
    },
    /** Ends the process: none of its callbacks runs any more. */
    kill: () => {
      isAlive = false;
      late = [];
    },
    /** Number of timers that wait and keep the process alive. */
    timers: () => timers,
  };
}

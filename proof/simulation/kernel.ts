interface Event {
  /** Virtual time, ms. */
  readonly at: number;
  /** Drawn from the seed: decides among events that are due at the same time. */
  readonly order: number;
  /** Undefined once it is cancelled, so that it keeps nothing in memory until it would have been due. */
  run: (() => void) | undefined;
}

interface Line {
  readonly at: number;
  readonly text: string;
}

const MAX_KEPT_LINES = 4000;

/**
 * Steps in one turn of the event loop. Node runs all ticks and promises that are due between two immediates of a turn, so each
 * step begins after everything that follows from the one before. Real input and output is served between two turns.
 */
const STEPS_PER_TURN = 500;

const realSetImmediate = globalThis.setImmediate;

interface Immediate {
  run: (() => void) | undefined;
}

/** Immediates of the sources under test, in order. */
const immediates: Immediate[] = [];

/**
 * Replaces `setImmediate`, so that each event runs to its end, with all the turns that it needs, before virtual time goes on.
 */
export function takeOverImmediates(): void {
  const take = (callback: (...args: unknown[]) => void, ...args: unknown[]) => {
    const immediate: Immediate = { run: () => callback(...args) };
    // While no events run, it needs a step of its own.
    realSetImmediate(runImmediate);
    immediates.push(immediate);
    return immediate;
  };
  globalThis.setImmediate = take as unknown as typeof setImmediate;
  globalThis.clearImmediate = (immediate) => {
    if (immediate !== undefined) (immediate as unknown as Immediate).run = undefined;
  };
}

/** Runs the oldest immediate of the sources. Returns whether there was one. */
function runImmediate(): boolean {
  const immediate = immediates.shift();
  immediate?.run?.();
  return immediate !== undefined;
}

/** Virtual time of one run: a queue of events and one thread. */
export type Kernel = ReturnType<typeof createKernel>;

export function createKernel(random: () => number) {
  const heap: Event[] = [];
  const lines: Line[] = [];
  let now = 0;
  const ending = { isStopped: false };
  let digest = 0;
  const realWork = new Set<Promise<unknown>>();

  function isBefore(one: Event, other: Event): boolean {
    return one.at === other.at ? one.order < other.order : one.at < other.at;
  }

  function push(event: Event): void {
    let index = heap.length;
    heap.push(event);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Event;
      if (!isBefore(event, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = event;
  }

  function pop(): Event | undefined {
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || first === last) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      const right = child + 1;
      if (right < heap.length && isBefore(heap[right] as Event, heap[child] as Event)) {
        child = right;
      }
      if (!isBefore(heap[child] as Event, last)) break;
      heap[index] = heap[child] as Event;
      index = child;
    }
    heap[index] = last;
    return first;
  }

  /** Runs the next event. Returns false if there is none, or `mayRun` rejects it. */
  function runEvent(mayRun: (next: Event) => boolean): boolean {
    const [next] = heap;
    if (next === undefined || !mayRun(next)) return false;
    pop();
    if (next.run === undefined) return true;
    now = next.at;
    digest = (Math.imul(digest ^ Math.floor(now * 1000), 0x9e3779b1) + digest) | 0;
    next.run();
    return true;
  }

  /** Runs events, and what follows from each, until `mayRun` rejects the next one. */
  function runEvents(mayRun: (next: Event) => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let planned = 0;
    let isWaiting = false;
    const plan = () => {
      isWaiting = false;
      for (; planned < STEPS_PER_TURN; planned += 1) realSetImmediate(step);
    };
    const step = () => {
      planned -= 1;
      if (isWaiting) return;
      try {
        if (runImmediate()) {
          // One step for each.
        } else if (realWork.size > 0) {
          isWaiting = true;
          // What follows from it comes before the next step.
          void Promise.allSettled(realWork).then(() => realSetImmediate(plan));
        } else if (!runEvent(mayRun)) {
          isWaiting = true;
          resolve();
        }
      } catch (error) {
        isWaiting = true;
        reject(error instanceof Error ? error : new Error(String(error)));
      }
      if (planned === 0 && !isWaiting) plan();
    };
    plan();
    return promise;
  }

  return {
    /** Virtual time, ms from the start. */
    now: () => now,
    /** Returns a random number from 0 up to, not including, 1. */
    random,
    /** Returns true with this probability. */
    chance: (probability: number) => random() < probability,
    /** Returns a number from `least` up to, not including, `most`. */
    between: (least: number, most: number) => least + random() * (most - least),
    /** Calls back `ms` from now. Returns the function that cancels it. */
    after: (ms: number, run: () => void) => {
      const event: Event = { at: now + Math.max(0, ms), order: random(), run };
      push(event);
      return () => {
        event.run = undefined;
      };
    },
    /**
     * Waits for real input or output, while virtual time stands still. Calls run one after the other, because real time would
     * decide which ends first. `work` must not call `real`: it would wait for itself.
     */
    real: async <Result>(work: () => Promise<Result>): Promise<Result> => {
      const done = realWork.size === 0 ? work() : Promise.allSettled(realWork).then(work);
      realWork.add(done);
      try {
        return await done;
      } finally {
        realWork.delete(done);
      }
    },
    /** Adds a line to the trace. */
    note: (text: string) => {
      lines.push({ at: now, text });
      if (lines.length > 2 * MAX_KEPT_LINES) lines.splice(0, MAX_KEPT_LINES);
    },
    /** Ends `runUntil` after this event. */
    stop: () => {
      ending.isStopped = true;
    },
    /** Runs all events until this virtual time, or until the work has settled. @throws {Error} if it has not by then */
    runUntil: async (end: number, work?: Promise<unknown>) => {
      const state: { isOver: boolean; failure?: { readonly error: unknown } } = { isOver: false };
      work?.then(
        () => (state.isOver = true),
        (error: unknown) => {
          state.isOver = true;
          state.failure = { error };
        },
      );
      const mayRun = ({ at }: Event) => !state.isOver && !ending.isStopped && at <= end;
      await runEvents(mayRun);
      if (state.failure !== undefined) throw state.failure.error;
      if (ending.isStopped) return;
      if (work === undefined) now = Math.max(now, end);
      else if (!state.isOver) throw new Error('something that should have ended has not');
    },
    /** Returns a hash of the times of all events: two runs with the same one are the same run. */
    digest: () => digest,
    /** Returns the last lines of the trace. */
    trace: () => lines.map(({ at, text }) => `${timeOf(at)} ${text}`),
  };
}

/** Formats virtual time as days, hours, minutes and seconds. */
function timeOf(ms: number): string {
  const day = Math.floor(ms / 86_400_000);
  return `${day}d${new Date(ms % 86_400_000).toISOString().slice(11, 23)}`;
}

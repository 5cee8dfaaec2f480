import { createHash, type Hash } from 'node:crypto';

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

/** Virtual time of one run: a queue of events and one thread. */
export interface Kernel {
  /** Virtual time, ms from the start. */
  now(): number;
  /** Returns a random number from 0 up to, not including, 1. */
  random(): number;
  /** Returns true with this probability. */
  chance(probability: number): boolean;
  /** Returns a number from `least` up to, not including, `most`. */
  between(least: number, most: number): number;
  /** Calls back `ms` from now. Returns the function that cancels it. */
  after(ms: number, run: () => void): () => void;
  /**
   * Waits for real input or output, while virtual time stands still. Calls run one after the other, because real time would
   * decide which ends first. `work` must not call `real`: it would wait for itself.
   */
  real<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Adds a line to the trace. */
  note(text: string): void;
  /** Ends `runUntil` after this event. */
  stop(): void;
  /** Runs all events until this virtual time, or until the work has settled. @throws {Error} if it has not by then */
  runUntil(at: number, work?: Promise<unknown>): Promise<void>;
  /** Returns a hash of the trace and of the times of all events. */
  digest(): string;
  /** Returns the last lines of the trace. */
  trace(): readonly string[];
}

const MAX_KEPT_LINES = 4000;
/** Characters of the trace that are hashed at once. */
const HASHED_AT_ONCE = 65_536;

/** Events in one turn of the event loop, so that real output is written in between. */
const EVENTS_PER_TURN = 1000;

const realSetImmediate = globalThis.setImmediate;
/** Node's internal function that runs the queues of ticks and of promises. */
const { _tickCallback: runMicrotasks } = process as unknown as {
  readonly _tickCallback: () => void;
};

/** Immediates that the sources under test run in the next turn of the event loop. */
let nextTurn: Immediate[] = [];

interface Immediate {
  run: (() => void) | undefined;
}

/**
 * Replaces `setImmediate`, so that each event runs to its end, through all the turns that it needs, before the next event,
 * without a real turn of the event loop.
 */
export function takeOverImmediates(): void {
  const take = (callback: (...args: unknown[]) => void, ...args: unknown[]) => {
    const immediate: Immediate = { run: () => callback(...args) };
    if (nextTurn.length === 0) realSetImmediate(endEvent);
    nextTurn.push(immediate);
    return immediate;
  };
  globalThis.setImmediate = take as unknown as typeof setImmediate;
  globalThis.clearImmediate = (immediate) => {
    if (immediate !== undefined) (immediate as unknown as Immediate).run = undefined;
  };
}

/** Runs everything that needs no time and no real input or output. */
function endEvent(): void {
  runMicrotasks();
  while (nextTurn.length > 0) {
    const turn = nextTurn;
    nextTurn = [];
    // An immediate may cancel another.
    for (const immediate of turn) {
      immediate.run?.();
      runMicrotasks();
    }
  }
}

export function createKernel(random: () => number): Kernel {
  const heap: Event[] = [];
  const lines: Line[] = [];
  const hash: Hash = createHash('sha256');
  /** Trace that is not hashed yet. */
  let unhashed = '';
  let now = 0;
  const ending = { isStopped: false };
  /** Hash of the times of all events. */
  let mixed = 0;
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

  /** Waits until real work and everything that follows from it has ended. */
  async function settle(): Promise<void> {
    do {
      await Promise.allSettled(realWork);
      await new Promise<void>((resolve) => void realSetImmediate(resolve));
    } while (realWork.size > 0 || nextTurn.length > 0);
  }

  /** Runs some events, until `mayRun` rejects the next one or one begins real work. Returns whether more events may run. */
  function runEvents(mayRun: (next: Event) => boolean): boolean {
    for (let left = EVENTS_PER_TURN; left > 0; left -= 1) {
      const [next] = heap;
      if (next === undefined || !mayRun(next)) return false;
      pop();
      const { run } = next;
      if (run === undefined) continue;
      now = next.at;
      mixed = (Math.imul(mixed ^ Math.floor(now * 1000), 0x9e3779b1) + mixed) | 0;
      run();
      endEvent();
      if (realWork.size > 0) return true;
    }
    return true;
  }

  return {
    now: () => now,
    random,
    chance: (probability) => random() < probability,
    between: (least, most) => least + random() * (most - least),
    after: (ms, run) => {
      const event: Event = { at: now + Math.max(0, ms), order: random(), run };
      push(event);
      return () => {
        event.run = undefined;
      };
    },
    real: async (work) => {
      const done = realWork.size === 0 ? work() : Promise.allSettled(realWork).then(work);
      realWork.add(done);
      try {
        return await done;
      } finally {
        realWork.delete(done);
      }
    },
    note: (text) => {
      unhashed += `${now} ${text}\n`;
      if (unhashed.length > HASHED_AT_ONCE) {
        hash.update(unhashed);
        unhashed = '';
      }
      lines.push({ at: now, text });
      if (lines.length > 2 * MAX_KEPT_LINES) lines.splice(0, MAX_KEPT_LINES);
    },
    stop: () => {
      ending.isStopped = true;
    },
    runUntil: async (end, work) => {
      const state: { isOver: boolean; failure?: { readonly error: unknown } } = { isOver: false };
      work?.then(
        () => (state.isOver = true),
        (error: unknown) => {
          state.isOver = true;
          state.failure = { error };
        },
      );
      const mayRun = ({ at }: Event) => !state.isOver && !ending.isStopped && at <= end;
      let goesOn = true;
      while (goesOn) {
        await settle();
        // Microtasks do not run within the reaction of a promise.
        goesOn = await new Promise<boolean>((resolve, reject) => {
          realSetImmediate(() => {
            try {
              resolve(runEvents(mayRun));
            } catch (error) {
              reject(error instanceof Error ? error : new Error(String(error)));
            }
          });
        });
      }
      if (state.failure !== undefined) throw state.failure.error;
      if (ending.isStopped) return;
      if (work === undefined) now = Math.max(now, end);
      else if (!state.isOver) throw new Error('something that should have ended has not');
    },
    digest: () => hash.copy().update(`${unhashed}${mixed}`).digest('hex'),
    trace: () => lines.map(({ at, text }) => `${timeOf(at)} ${text}`),
  };
}

/** Formats virtual time as days, hours, minutes and seconds. */
function timeOf(ms: number): string {
  const day = Math.floor(ms / 86_400_000);
  return `${day}d${new Date(ms % 86_400_000).toISOString().slice(11, 23)}`;
}

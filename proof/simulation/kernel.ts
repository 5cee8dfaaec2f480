import { createHash, type Hash } from 'node:crypto';

/** Something that will happen. */
interface Event {
  /** Virtual time, ms. */
  readonly at: number;
  /** Drawn from the seed: decides among events that are due at the same time. */
  readonly order: number;
  readonly run: () => void;
  isCancelled: boolean;
}

/** Virtual time of one run: a queue of events and one thread. */
export interface Kernel {
  /** Virtual time, ms from the start. */
  now(): number;
  /** Returns a random number from 0 up to, not including, 1. */
  random(): number;
  /** Whether something of this probability happens. */
  chance(probability: number): boolean;
  /** Returns a number from `least` up to, not including, `most`. */
  between(least: number, most: number): number;
  /** Calls back `ms` from now. Returns the function that cancels it. */
  after(ms: number, run: () => void): () => void;
  /** Waits for real input or output, for which virtual time stands still. */
  real<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Adds a line to the trace. */
  note(text: string): void;
  /** Ends `runUntil` after this event. */
  stop(): void;
  /** Runs all events until this virtual time, or until the work has settled. @throws {Error} if it has not by then */
  runUntil(at: number, work?: Promise<unknown>): Promise<void>;
  /** Hash of the trace, and of when each event was. */
  digest(): string;
  /** The last lines of the trace. */
  trace(): readonly string[];
}

const MAX_KEPT_LINES = 4000;

/** Immediates of the sources under test that wait: the turns of the event loop that an event still needs. */
let waitingImmediates = 0;
const realSetImmediate = globalThis.setImmediate;
const realClearImmediate = globalThis.clearImmediate;

/** Counts the immediates that wait, so that each event runs to its end before the next one. */
export function countImmediates(): void {
  const open = new Set<NodeJS.Immediate>();
  const counting = (callback: (...args: unknown[]) => void, ...args: unknown[]) => {
    const immediate = realSetImmediate(() => {
      open.delete(immediate);
      waitingImmediates = open.size;
      callback(...args);
    });
    open.add(immediate);
    waitingImmediates = open.size;
    return immediate;
  };
  globalThis.setImmediate = counting as typeof setImmediate;
  globalThis.clearImmediate = (immediate) => {
    if (immediate === undefined) return;
    if (typeof immediate === 'object') open.delete(immediate);
    waitingImmediates = open.size;
    realClearImmediate(immediate);
  };
}

export function createKernel(random: () => number): Kernel {
  const heap: Event[] = [];
  const lines: string[] = [];
  const hash: Hash = createHash('sha256');
  let now = 0;
  const ending = { isStopped: false };
  /** Mixture of the times of all events. */
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

  /** Lets everything happen that needs no time. */
  async function settle(): Promise<void> {
    for (;;) {
      await new Promise<void>((resolve) => void realSetImmediate(resolve));
      if (realWork.size > 0) await Promise.allSettled(realWork);
      else if (waitingImmediates === 0) return;
    }
  }

  return {
    now: () => now,
    random,
    chance: (probability) => random() < probability,
    between: (least, most) => least + random() * (most - least),
    after: (ms, run) => {
      const event = { at: now + Math.max(0, ms), order: random(), run, isCancelled: false };
      push(event);
      return () => {
        event.isCancelled = true;
      };
    },
    real: async (work) => {
      const done = work();
      realWork.add(done);
      try {
        return await done;
      } finally {
        realWork.delete(done);
      }
    },
    note: (text) => {
      const line = `${timeOf(now)} ${text}`;
      hash.update(`${line}\n`);
      lines.push(line);
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
      await settle();
      while (!state.isOver && !ending.isStopped) {
        const next = heap[0];
        if (next === undefined || next.at > end) break;
        pop();
        if (next.isCancelled) continue;
        now = next.at;
        mixed = (Math.imul(mixed ^ Math.floor(now * 1000), 0x9e3779b1) + mixed) | 0;
        next.run();
        await settle();
      }
      if (state.failure !== undefined) throw state.failure.error;
      if (ending.isStopped) return;
      if (work === undefined) now = Math.max(now, end);
      else if (!state.isOver) throw new Error('something that should have ended has not');
    },
    digest: () => hash.copy().update(String(mixed)).digest('hex'),
    trace: () => lines,
  };
}

/** Virtual time as days, hours, minutes and seconds. */
function timeOf(ms: number): string {
  const day = Math.floor(ms / 86_400_000);
  return `${day}d${new Date(ms % 86_400_000).toISOString().slice(11, 23)}`;
}

import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { EventPosition, StoreReader } from '../../monitor/ports/store.ts';
import { pollFields } from '../../rows/fields.ts';
import type { Asker } from '../limits/client.ts';
import { createTimeBudget } from '../limits/time-budget.ts';
import { createFairQueue } from '../limits/fair-queue.ts';
import { eventText, type StreamedEvent, writeId } from './event.ts';
import { type EventPage, nothingAfter, toPage } from './page.ts';

/** Transitions, and failures, read at once: a row with an `error_info` has up to 10 kB. */
const MAX_ROWS = 100;
/** Time that all streams together may take to catch up. After a rest, clients that have missed little do not wait. */
const BUDGET = { share: 1 / 10, burstMs: 200, maxPauseMs: 2000 };
/** Streams have a limit of their own. */
const ALL = { maxWaiting: Infinity, maxWaitingPerKey: Infinity };
/** Finished polls that are remembered for clients that are a little behind. */
const POLLS = 500;
/** News within this time are one for the clients, ms: a busy monitor does not wake each of them for each commit. */
const MIN_GATHER_MS = 50;
/** Writing to a client takes a tenth of it. */
const GATHER_MS_PER_CLIENT = 1;

/** Pages that are kept: clients at the end share one, and so do clients that catch up in step. */
const MAX_PAGES = 8;
const BEGINNING: EventPosition = { transition: 0, settlement: 0 };

interface FeedReader extends Asker {
  /** Whether it misses events from before the last news. */
  readonly isBehind: boolean;
}

/** What all streams have in common: who is at the same place shares what is read and written for it. */
export interface EventFeed {
  /** Has to see the monitor's events: commits and finished polls are news. */
  readonly observe: Observer;
  /** Where the recorded events end now. @throws {StoreError} */
  end(): Promise<EventPosition>;
  /**
   * Resolves to the events after a position. A client that catches up waits for its turn, and must write the events at once.
   * Clients that had every event before the last news do not wait, and share one read.
   * @throws {StoreError}
   */
  read(after: EventPosition, reader: FeedReader): Promise<EventPage>;
  /** Finished polls after so many, of those that are still remembered, and how many there were in all. */
  polls(after: number): { readonly events: readonly StreamedEvent[]; readonly count: number };
  /** Changes with all news. */
  version(): number;
  /** Waits for news since `version`: false when `ms` passed, or the signal came, without any. */
  news(version: number, ms: number, signal: AbortSignal): Promise<boolean>;
}

/** `lookEveryMs` is how often a store is read whose commits are not all told here; without it they are. */
export function createEventFeed(
  store: Pick<StoreReader, 'events'>,
  clock: Pick<Clock, 'monotonic'>,
  { lookEveryMs }: { readonly lookEveryMs?: number } = {},
): EventFeed {
  const budget = createTimeBudget({ clock, ...BUDGET });
  const queue = createFairQueue({ budget, ...ALL });
  let version = 0;
  /** Where the events ended when they were last read. */
  let end: EventPosition | undefined;
  let ending: Promise<EventPosition> | undefined;
  /** Pages since the last news, by the id that they come after. */
  const pages = new Map<string, Promise<EventPage>>();
  /** Rows to read next: as many as fill a page, going by the last one. */
  let rows = MAX_ROWS;
  let polls: readonly StreamedEvent[] = [];
  let pollCount = 0;
  const waiting = new Set<() => void>();
  let gathering: NodeJS.Timeout | undefined;
  let looking: NodeJS.Timeout | undefined;

  function announce(): void {
    version += 1;
    pages.clear();
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

  async function load(after: EventPosition): Promise<EventPage> {
    const limit = rows;
    const recorded = await store.events(after, limit);
    ({ end } = recorded);
    const page = toPage(after, recorded, limit);
    const isCut = recorded.transitions.length + recorded.settled.length > page.events.length;
    rows = Math.min(MAX_ROWS, isCut ? page.events.length + 1 : 2 * limit);
    return page;
  }

  function shared(after: EventPosition): Promise<EventPage> {
    const id = writeId(after);
    const known = pages.get(id);
    if (known !== undefined) return known;
    const page = load(after);
    const [oldest] = pages.keys();
    if (pages.size >= MAX_PAGES && oldest !== undefined) pages.delete(oldest);
    pages.set(id, page);
    page.catch(() => {
      if (pages.get(id) === page) pages.delete(id);
    });
    return page;
  }

  async function inTurn(after: EventPosition, reader: FeedReader): Promise<EventPage> {
    const turn = await queue.waitForTurn(reader);
    if (turn === undefined) return nothingAfter(after);
    try {
      return await shared(after);
    } finally {
      // When the client has written what it took.
      setImmediate(() => turn[Symbol.dispose]());
    }
  }

  async function findEnd(): Promise<EventPosition> {
    ({ end } = await store.events(BEGINNING, 0));
    return end;
  }

  /** More than the last news is missing. */
  function isFarBehind({ transition, settlement }: EventPosition): boolean {
    if (end === undefined) return true;
    return end.transition - transition > MAX_ROWS || end.settlement - settlement > MAX_ROWS;
  }

  return {
    observe: (event) => {
      if (event.type === 'store.committed') announce();
      if (event.type !== 'poll.finished') return;
      const { project } = event;
      const text = eventText('poll', pollFields(event));
      const poll: StreamedEvent = { type: 'poll', project, text };
      polls = [...polls.slice(1 - POLLS), poll];
      pollCount += 1;
      announce();
    },
    end: () => {
      ending ??= findEnd().finally(() => {
        ending = undefined;
      });
      return ending;
    },
    read: (after, reader) =>
      reader.isBehind || isFarBehind(after) ? inTurn(after, reader) : shared(after),
    polls: (after) => ({
      events: after === pollCount ? [] : polls.slice(after - pollCount),
      count: pollCount,
    }),
    version: () => version,
    news: async (seen, ms, signal) => {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const wake = () => resolve(true);
      const giveUp = () => resolve(false);
      const timer = setTimeout(giveUp, ms);
      waiting.add(wake);
      if (lookEveryMs !== undefined) looking ??= setInterval(announce, lookEveryMs);
      if (seen !== version) gather();
      signal.addEventListener('abort', giveUp);
      if (signal.aborted) giveUp();
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        waiting.delete(wake);
        if (waiting.size === 0) {
          clearInterval(looking);
          looking = undefined;
        }
        signal.removeEventListener('abort', giveUp);
      }
    },
  };
}

import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { EventPosition, StoreReader } from '../../monitor/ports/store.ts';
import { pollFields } from '../../rows/fields.ts';
import type { Requester } from '../limits/client.ts';
import { createTimeBudget } from '../limits/time-budget.ts';
import { createFairQueue } from '../limits/fair-queue.ts';
import { eventText, type StreamedEvent, writeId } from './event.ts';
import { createNews } from './news.ts';
import { type EventPage, nothingAfter, toPage } from './page.ts';

/** Maximum number of transitions, and of failures, in one read: a row with an `error_info` has up to 10 kB. */
const MAX_ROWS = 100;
/** Share of time for all streams that catch up. After a rest, clients that lack few events do not wait. */
const BUDGET = { share: 1 / 10, burstMs: 200, maxPauseMs: 2000 };
/** limits/requests.ts limits the number of streams. */
const UNLIMITED = { maxWaiting: Infinity, maxWaitingPerKey: Infinity };
/** Number of finished polls that are kept for clients that are a little behind. */
const MAX_POLLS = 500;
/** Number of kept pages: clients at the end share one, and so do clients that catch up together. */
const MAX_PAGES = 8;
const BEGINNING: EventPosition = { transition: 0, settlement: 0 };

interface FeedReader extends Requester {
  /** Whether it lacks events from before the last announcement. */
  readonly isBehind: boolean;
}

/** The source of all event streams: clients at the same position share what is read and rendered. */
export interface EventFeed {
  /** Observes the monitor: announces commits and finished polls. */
  readonly observe: Observer;
  /** Returns the position after the newest recorded event. @throws {StoreError} */
  end(): Promise<EventPosition>;
  /**
   * Resolves to the events after a position. A client that catches up waits for its turn, and must write the events at once.
   * Clients that had every event before the last news do not wait, and share one read.
   * @throws {StoreError}
   */
  read(after: EventPosition, reader: FeedReader): Promise<EventPage>;
  /** Returns the kept polls after the first `after` ones, and the number of all finished polls. */
  polls(after: number): { readonly events: readonly StreamedEvent[]; readonly count: number };
  /** Grows with every announcement of new events. */
  version(): number;
  /** Waits for new events since `version`: resolves to false if `ms` pass, or the signal aborts, without any. */
  waitForNews(version: number, ms: number, signal: AbortSignal): Promise<boolean>;
}

/** Creates the feed. `intervalMs`: interval of reading the store for commits of other processes; by default there are none. */
export function createEventFeed(
  store: Pick<StoreReader, 'events'>,
  clock: Pick<Clock, 'monotonic'>,
  { intervalMs }: { readonly intervalMs?: number } = {},
): EventFeed {
  const budget = createTimeBudget({ clock, ...BUDGET });
  const queue = createFairQueue({ budget, ...UNLIMITED });
  /** Position after the newest event as of the last read. */
  let end: EventPosition | undefined;
  let ending: Promise<EventPosition> | undefined;
  /** Pages read since the last announcement, by the id that they come after. */
  const pages = new Map<string, Promise<EventPage>>();
  /** Number of rows to read next, estimated from the number that filled the last page. */
  let rows = MAX_ROWS;
  let polls: readonly StreamedEvent[] = [];
  let pollCount = 0;
  const news = createNews({ intervalMs, onAnnouncement: () => pages.clear() });

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
      // Runs after the client has written its page.
      setImmediate(() => turn[Symbol.dispose]());
    }
  }

  async function findEnd(): Promise<EventPosition> {
    ({ end } = await store.events(BEGINNING, 0));
    return end;
  }

  /** Whether more is missing than what one commit may add. */
  function isFarBehind({ transition, settlement }: EventPosition): boolean {
    if (end === undefined) return true;
    return end.transition - transition > MAX_ROWS || end.settlement - settlement > MAX_ROWS;
  }

  return {
    observe: (event) => {
      if (event.type === 'store.committed') news.announce();
      if (event.type !== 'poll.finished') return;
      const { project } = event;
      const text = eventText('poll', pollFields(event));
      const poll: StreamedEvent = { type: 'poll', project, text };
      polls = [...polls.slice(1 - MAX_POLLS), poll];
      pollCount += 1;
      news.announce();
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
    version: () => news.version(),
    waitForNews: (seen, ms, signal) => news.wait(seen, ms, signal),
  };
}

import type { StreamingApi } from 'hono/utils/stream';
import { unlessStoreFails } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { EventPosition, StoreReader } from '../../monitor/ports/store.ts';
import { pollFields } from '../../rows/fields.ts';
import { eventText, toPage, writeId } from './page.ts';
import type { EventPage, EventType, StreamedEvent } from './page.ts';

/** Maximum number of transitions, and of failures, in one read: a row with an `error_info` has up to 10 kB. */
const MAX_ROWS = 50;
/** Number of finished polls that are kept for clients that are a little behind. */
const MAX_POLLS = 500;
/** Time in which news are combined, ms: a busy monitor does not wake each client for each commit. */
const GATHER_MS = 50;
/** Interval of comments without news: clients and proxies may close a connection that is silent for longer. */
const HEARTBEAT_MS = 15_000;
/** Time that a client with a broken connection waits before it resumes. */
const RETRY_MS = 2000;

/** What a client asked for. */
export interface StreamQuery {
  /** Position after which the stream starts. */
  readonly start: EventPosition;
  readonly project: string | undefined;
  readonly type: EventType | undefined;
}

/** The source of all event streams: clients at the same position share what is read and rendered. */
export class EventFeed {
  readonly #store: Pick<StoreReader, 'events'>;
  /** Pages that are being read, by the id that they come after. */
  readonly #pages = new Map<string, Promise<EventPage>>();
  /** Wakes each client that waits. */
  readonly #waiting = new Set<() => void>();
  #polls: readonly StreamedEvent[] = [];
  #pollCount = 0;
  /** Number of times that clients were woken. */
  #version = 0;
  #isGathering = false;

  /** `intervalMs`: interval of reading the store for commits of other processes; by default there are none. */
  constructor(store: Pick<StoreReader, 'events'>, intervalMs?: number) {
    this.#store = store;
    if (intervalMs !== undefined) setInterval(() => this.#announce(), intervalMs).unref();
  }

  /** Observes the monitor: commits and finished polls are news. */
  readonly observe: Observer = (event) => {
    if (event.type === 'poll.finished') {
      const text = eventText('poll', pollFields(event));
      const poll: StreamedEvent = { type: 'poll', project: event.project, text };
      this.#polls = [...this.#polls.slice(1 - MAX_POLLS), poll];
      this.#pollCount += 1;
    } else if (event.type !== 'store.committed') return;
    this.#announce();
  };

  /** Returns the position after the newest recorded event. @throws {StoreError} */
  async end(): Promise<EventPosition> {
    return (await this.#store.events({ transition: 0, settlement: 0, finish: 0 }, 0)).end;
  }

  /**
   * Sends events as server-sent events until the client disconnects. Nothing is read for a client that has not taken the
   * previous text.
   */
  async send(
    stream: StreamingApi,
    clock: Clock,
    { start, project, type }: StreamQuery,
  ): Promise<void> {
    const gone = new AbortController();
    stream.onAbort(() => gone.abort());
    const isWanted = (event: StreamedEvent) =>
      (type === undefined || event.type === type) &&
      (project === undefined || event.project === project);
    let position = start;
    let polls = this.#pollCount;
    /** The last id that was sent to the client. */
    let sentId = writeId(start);
    let quietUntil = 0;
    const write = async (text: string): Promise<void> => {
      await stream.write(text);
      quietUntil = clock.monotonic() + HEARTBEAT_MS;
    };
    await write(`retry: ${RETRY_MS}\nid: ${sentId}\n\n`);

    while (!stream.aborted) {
      const version = this.#version;
      // Before the page is read, so that the page, or an earlier one, has the commits of these polls.
      const finished = this.#polls;
      const pollCount = this.#pollCount;
      const page = await unlessStoreFails(() => this.#read(position));
      const isBehind = page?.more === true;
      const { texts, lastId } = textsOf(page, isWanted);
      if (!isBehind && pollCount > polls) {
        const missed = finished.slice(polls - pollCount);
        texts.push(...missed.filter(isWanted).map(({ text }) => text));
        polls = pollCount;
      }
      position = page?.next ?? position;
      sentId = lastId ?? sentId;
      if (texts.length > 0) await write(texts.join(''));
      const leftMs = Math.max(0, quietUntil - clock.monotonic());
      if (isBehind ? leftMs > 0 : await this.#waitForNews(version, leftMs, gone.signal)) continue;
      // The position also moves past events that the client did not select.
      const id = writeId(position);
      await write(id === sentId ? ': still here\n\n' : `: still here\nid: ${id}\n\n`);
      sentId = id;
    }
  }

  async #read(after: EventPosition): Promise<EventPage> {
    const id = writeId(after);
    const underWay = this.#pages.get(id);
    if (underWay !== undefined) return await underWay;
    const page = this.#store
      .events(after, MAX_ROWS)
      .then((recorded) => toPage(after, recorded, MAX_ROWS));
    this.#pages.set(id, page);
    try {
      return await page;
    } finally {
      if (this.#pages.get(id) === page) this.#pages.delete(id);
    }
  }

  #announce(): void {
    // What is being read may lack the news.
    this.#pages.clear();
    if (this.#isGathering) return;
    this.#isGathering = true;
    setTimeout(() => {
      this.#isGathering = false;
      this.#version += 1;
      for (const wake of this.#waiting) wake();
    }, GATHER_MS).unref();
  }

  /** Waits for news since `version`: resolves to false if `ms` pass, or the signal aborts, without any. */
  async #waitForNews(version: number, ms: number, signal: AbortSignal): Promise<boolean> {
    if (version !== this.#version) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const wake = () => resolve(true);
    const giveUp = () => resolve(false);
    const timer = setTimeout(giveUp, ms);
    signal.addEventListener('abort', giveUp);
    if (signal.aborted) giveUp();
    this.#waiting.add(wake);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      this.#waiting.delete(wake);
    }
  }
}

/** Returns the texts of a page for a client: a `reset` for a gap, then the selected events; and the last id in them. */
function textsOf(
  page: EventPage | undefined,
  isWanted: (event: StreamedEvent) => boolean,
): { readonly texts: string[]; readonly lastId: string | undefined } {
  if (page === undefined) return { texts: [], lastId: undefined };
  const wanted = page.events.filter((event) => isWanted(event));
  const texts = wanted.map(({ text }) => text);
  let last = wanted.at(-1)?.position;
  if (page.gap !== undefined) {
    const isAll = page.events.length === 0;
    texts.unshift(eventText('reset', { reason: page.gap }, isAll ? page.next : undefined));
    last ??= isAll ? page.next : undefined;
  }
  return { texts, lastId: last && writeId(last) };
}

import { unlessStoreFails } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { EventPosition } from '../../monitor/ports/store.ts';
import { eventText, type EventType, type StreamedEvent, writeId } from './event.ts';
import type { EventFeed } from './feed.ts';
import { type EventPage, nothingAfter } from './page.ts';

/** Interval of comments without news: clients and proxies may close a connection that is silent for longer. */
const HEARTBEAT_MS = 15_000;
/** Time that a client with a broken connection waits before it resumes. */
const RETRY_MS = 2000;
/** Maximum length of one write. A client that does not read holds it in memory. */
const MAX_CHARACTERS = 32 * 1024;

export interface StreamQuery {
  /** Position after which the stream starts. */
  readonly start: EventPosition;
  /** Whether the client named a position, which may be far behind. */
  readonly hasStartId: boolean;
  readonly project: string | undefined;
  readonly type: EventType | undefined;
  /** Name of the client, for the turns of streams that catch up. */
  readonly client: string;
}

/**
 * Streams events as server-sent events until the client disconnects. Nothing is read or written for a client that has not
 * taken the previous text.
 */
export function streamEvents(
  feed: EventFeed,
  clock: Clock,
  query: StreamQuery,
): ReadableStream<Uint8Array> {
  const gone = new AbortController();
  const texts = follow(feed, clock, query, gone.signal);
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { value, done } = await texts.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      cancel: () => gone.abort(),
    },
    { highWaterMark: 0 },
  );
}

async function* follow(
  feed: EventFeed,
  clock: Clock,
  { start, project, type, client, ...query }: StreamQuery,
  gone: AbortSignal,
): AsyncGenerator<string, void> {
  const isWanted = (event: StreamedEvent) =>
    (type === undefined || event.type === type) &&
    (project === undefined || event.project === project);
  let position = start;
  let isBehind = query.hasStartId;
  let polls = feed.polls(0).count;
  /** The last id that was sent to the client. */
  let sentId = writeId(start);
  let quietUntil = clock.monotonic() + HEARTBEAT_MS;
  yield `retry: ${RETRY_MS}\nid: ${sentId}\n\n`;

  while (!gone.aborted) {
    const version = feed.version();
    // Before the page is read, so that the page, or an earlier one, has the commits of these polls.
    const finished = feed.polls(polls);
    const page = await unlessStoreFails(() => feed.read(position, { client, isBehind, gone }));
    const { texts, lastId } = textsOf(page ?? nothingAfter(position), isWanted);
    position = page?.next ?? position;
    sentId = lastId ?? sentId;
    isBehind = page?.more === true;
    if (!isBehind) {
      texts.push(...finished.events.filter(isWanted).map(({ text }) => text));
      polls = finished.count;
    }
    for (const piece of inPieces(texts)) {
      yield piece;
      quietUntil = clock.monotonic() + HEARTBEAT_MS;
    }
    if (isBehind) continue;
    // The 15 s may be over by now: reading the store can take longer.
    const leftMs = Math.max(0, quietUntil - clock.monotonic());
    if (await feed.waitForNews(version, leftMs, gone)) continue;
    // The position also moves past events that the client did not select.
    const id = writeId(position);
    yield id === sentId ? ': still here\n\n' : `: still here\nid: ${id}\n\n`;
    sentId = id;
    quietUntil = clock.monotonic() + HEARTBEAT_MS;
  }
}

/** Returns the texts of a page for a client: a `reset` for a gap, then the selected events; and the last id in them. */
function textsOf(
  page: EventPage,
  isWanted: (event: StreamedEvent) => boolean,
): { readonly texts: string[]; readonly lastId: string | undefined } {
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

function* inPieces(texts: readonly string[]): Generator<string, void> {
  let piece = '';
  for (const text of texts) {
    if (piece !== '' && piece.length + text.length > MAX_CHARACTERS) {
      yield piece;
      piece = '';
    }
    piece += text;
  }
  if (piece !== '') yield piece;
}

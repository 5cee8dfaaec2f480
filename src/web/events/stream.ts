import { StoreError } from '../../monitor/errors.ts';
import type { Clock, EventPosition } from '../../monitor/ports.ts';
import { eventText, type EventType, type StreamedEvent, writeId } from './event.ts';
import type { EventFeed } from './feed.ts';
import type { EventPage } from './page.ts';

/** A client that hears nothing for longer, and a proxy in between, may take the connection for dead. */
const HEARTBEAT_MS = 15_000;
/** How long a client whose connection broke waits before it resumes. */
const RETRY_MS = 2000;
/** Of text that is handed out at once: so much, and one event, a client that does not read can hold in memory. */
const CHUNK_CHARACTERS = 64 * 1024;

export interface StreamQuery {
  /** The first event is the one after this. */
  readonly start: EventPosition;
  readonly project: string | undefined;
  readonly type: EventType | undefined;
}

/**
 * The events as server-sent events, for as long as the client stays. Nothing is read or written for a client that has not
 * taken what came before.
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
  { start, project, type }: StreamQuery,
  gone: AbortSignal,
): AsyncGenerator<string, void> {
  const isWanted = (event: StreamedEvent) =>
    (type === undefined || event.type === type) &&
    (project === undefined || event.project === project);
  let position = start;
  let polls = feed.polls(0).count;
  /** The last id that the client was told. */
  let told = writeId(start);
  let quietUntil = clock.monotonic() + HEARTBEAT_MS;
  yield `retry: ${RETRY_MS}\nid: ${told}\n\n`;

  while (!gone.aborted) {
    const version = feed.version();
    // Before the page: what these polls committed is then in it, or in those before.
    const finished = feed.polls(polls);
    // oxlint-disable-next-line no-await-in-loop -- one stretch after the other
    const page = await readable(feed.read(position));
    const chunk = takeChunk(page ?? nothingAfter(position), isWanted);
    const texts = [...chunk.texts];
    ({ position } = chunk);
    told = chunk.told ?? told;
    if (!chunk.more) {
      texts.push(...finished.events.filter(isWanted).map(({ text }) => text));
      polls = finished.count;
    }
    if (texts.length > 0) {
      yield texts.join('');
      quietUntil = clock.monotonic() + HEARTBEAT_MS;
    }
    if (chunk.more) continue;
    // oxlint-disable-next-line no-await-in-loop -- the pause between them
    if (await feed.news(version, quietUntil - clock.monotonic(), gone)) continue;
    // What was not for this client has been passed all the same.
    const id = writeId(position);
    yield id === told ? ': still here\n\n' : `: still here\nid: ${id}\n\n`;
    told = id;
    quietUntil = clock.monotonic() + HEARTBEAT_MS;
  }
}

/** Undefined while the store cannot be read, of which others tell: the stream goes on when it can. */
async function readable(page: Promise<EventPage>): Promise<EventPage | undefined> {
  try {
    return await page;
  } catch (error) {
    if (error instanceof StoreError) return undefined;
    throw error;
  }
}

function nothingAfter(position: EventPosition): EventPage {
  return { events: [], gap: undefined, next: position, more: false };
}

interface Chunk {
  readonly texts: readonly string[];
  /** After all that the texts tell or leave out. */
  readonly position: EventPosition;
  /** The last id in them. */
  readonly told: string | undefined;
  /** There is more to send at once. */
  readonly more: boolean;
}

function takeChunk(page: EventPage, isWanted: (event: StreamedEvent) => boolean): Chunk {
  const texts: string[] = [];
  let last: EventPosition | undefined;
  let characters = 0;
  if (page.gap !== undefined) {
    last = page.events.length === 0 ? page.next : undefined;
    texts.push(eventText('reset', { reason: page.gap }, last));
  }
  for (const event of page.events) {
    if (last !== undefined && characters > CHUNK_CHARACTERS) {
      return { texts, position: last, told: writeId(last), more: true };
    }
    if (!isWanted(event)) continue;
    texts.push(event.text);
    characters += event.text.length;
    last = event.position;
  }
  return { texts, position: page.next, told: last && writeId(last), more: page.more };
}

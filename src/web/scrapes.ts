import type { ServerResponse } from 'node:http';

/** Maximum size of all renderings that clients are reading; above it, the newest is shared. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;
/** Minimum length of a write, unless it is the last one: pieces can be short. */
const MIN_WRITE_BYTES = 64 * 1024;

interface Rendering {
  readonly pieces: readonly Uint8Array[];
  readonly length: number;
  readers: number;
}

/** The exposition for one answer. */
export interface Scrape {
  readonly length: number;
  readonly body: ReadableStream<Uint8Array>;
}

/**
 * Answers scrapes with the current exposition. Scrapes at the same time share one rendering. While slow clients hold many
 * older ones, new scrapes share the newest: an exposition can be 16 MB long.
 * @param render makes the exposition; called again only after the previous call has ended
 */
export function createScrapes(
  render: () => AsyncIterable<Uint8Array>,
): (response: ServerResponse | undefined) => Promise<Scrape> {
  /** Renderings that clients are reading, the newest last. */
  const held = new Set<Rendering>();
  let rendering: Promise<Rendering> | undefined;

  async function renderNow(): Promise<Rendering> {
    const pieces: Uint8Array[] = [];
    for await (const piece of render()) pieces.push(piece);
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    return { pieces, length, readers: 0 };
  }

  function find(): Promise<Rendering> | Rendering {
    const newest = [...held].at(-1);
    const bytes = held.values().reduce((sum, each) => sum + each.length, 0);
    if (rendering === undefined && newest !== undefined && bytes >= MAX_HELD_BYTES) return newest;
    rendering ??= renderNow().finally(() => {
      rendering = undefined;
    });
    return rendering;
  }

  function hold(found: Rendering, response: ServerResponse): void {
    found.readers += 1;
    held.add(found);
    response.once('close', () => {
      found.readers -= 1;
      if (found.readers === 0) held.delete(found);
    });
  }

  return async (response) => {
    const found = await find();
    // The 'close' event of a response that closed before this point will not fire again.
    if (response !== undefined && !response.destroyed) hold(found, response);
    return { length: found.length, body: stream(found.pieces) };
  };
}

/** Streams the pieces. A client that does not read holds one write only, also over TLS. */
function stream(pieces: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  const writes = inWrites(pieces);
  return new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        const { value, done } = writes.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
    },
    { highWaterMark: 0 },
  );
}

function* inWrites(pieces: readonly Uint8Array[]): Generator<Uint8Array, void> {
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  for (const piece of pieces) {
    waiting.push(piece);
    bytes += piece.length;
    if (bytes < MIN_WRITE_BYTES) continue;
    yield Buffer.concat(waiting);
    waiting = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(waiting);
}

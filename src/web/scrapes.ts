import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { createGzip, gzipSync } from 'node:zlib';
import type { Encoding } from './request/encoding.ts';

/** Maximum size of all renderings that clients are reading; above it, the newest is shared. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;
/** Minimum length of a write, unless it is the last one: pieces can be short. */
const MIN_WRITE_BYTES = 64 * 1024;
/** Maximum length of what is compressed at once, which takes less than a millisecond. */
const MAX_BYTES_AT_ONCE = 256 * 1024;
/** Takes a quarter of the time of the default level, for a sixth more bytes. */
const GZIP_LEVEL = 1;

interface Rendering {
  readonly encoding: Encoding;
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
 * Answers scrapes with the current exposition. Scrapes at the same time share one rendering for each encoding. While slow
 * clients hold many older ones, new scrapes share the newest: an exposition can be 70 MB long.
 * @param render makes the exposition; called again for an encoding only after the previous call has ended
 */
export function createScrapes(
  render: () => AsyncIterable<Uint8Array>,
): (response: ServerResponse | undefined, encoding: Encoding) => Promise<Scrape> {
  /** Renderings that clients are reading, the newest last. */
  const held = new Set<Rendering>();
  const underWay = new Map<Encoding, Promise<Rendering>>();

  /** The whole exposition is made before its answer begins: until then, an error can still be answered 500. */
  async function renderNow(encoding: Encoding): Promise<Rendering> {
    const pieces = await (encoding === 'gzip' ? compress(render()) : collect(render()));
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    return { encoding, pieces, length, readers: 0 };
  }

  async function find(encoding: Encoding): Promise<Rendering> {
    const current = underWay.get(encoding);
    if (current !== undefined) return await current;
    const newest = [...held].findLast((each) => each.encoding === encoding);
    const bytes = held.values().reduce((sum, each) => sum + each.length, 0);
    if (newest !== undefined && bytes >= MAX_HELD_BYTES) return newest;
    const rendering = renderNow(encoding).finally(() => underWay.delete(encoding));
    underWay.set(encoding, rendering);
    return await rendering;
  }

  function hold(found: Rendering, response: ServerResponse): void {
    found.readers += 1;
    held.add(found);
    response.once('close', () => {
      found.readers -= 1;
      if (found.readers === 0) held.delete(found);
    });
  }

  return async (response, encoding) => {
    const found = await find(encoding);
    // The 'close' event of a response that closed before this point will not fire again.
    if (response !== undefined && !response.destroyed) hold(found, response);
    return { length: found.length, body: ReadableStream.from(inWrites(found.pieces)) };
  };
}

async function collect(pieces: AsyncIterable<Uint8Array>): Promise<readonly Uint8Array[]> {
  const collected: Uint8Array[] = [];
  for await (const piece of pieces) collected.push(piece);
  return collected;
}

/**
 * Compresses in the thread pool, as fast as the pieces are rendered. They are not kept. A short exposition is compressed at
 * once: each answer of the pool waits for a turn of the event loop, which is long while large listings are read.
 */
async function compress(pieces: AsyncIterable<Uint8Array>): Promise<readonly Uint8Array[]> {
  const iterator = pieces[Symbol.asyncIterator]();
  const start: Uint8Array[] = [];
  for (let bytes = 0; bytes <= MAX_BYTES_AT_ONCE;) {
    const { value, done } = await iterator.next();
    if (done === true) return [gzipSync(Buffer.concat(start), { level: GZIP_LEVEL })];
    start.push(value);
    bytes += value.length;
  }
  async function* all() {
    yield* start;
    yield* { [Symbol.asyncIterator]: () => iterator };
  }
  return await pipeline(inWrites(all()), createGzip({ level: GZIP_LEVEL }), collect);
}

/** Joins pieces for writing. A client that does not read holds one write only, also over TLS. */
async function* inWrites(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    waiting.push(piece);
    bytes += piece.length;
    if (bytes < MIN_WRITE_BYTES) continue;
    yield Buffer.concat(waiting);
    // Otherwise a fast reader gets the whole answer in one turn of the event loop.
    await setImmediate();
    waiting = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(waiting);
}

import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';

/** Length of what is compressed or decompressed at once. */
const CHUNK_BYTES = 64 * 1024;
/** Takes a quarter of the time of the default level, for a sixth more bytes. */
const GZIP_LEVEL = 1;

/** Renders the exposition in pieces, text format 0.0.4. */
export type RenderMetrics = () => Promise<readonly Uint8Array[]>;

/**
 * Creates the handler of scrapes. Scrapes at the same time share one exposition. It is kept in gzip, a twentieth of its size,
 * and decompressed while a client reads it that does not take gzip: so slow readers hold little memory.
 */
export function createScrapes(render: RenderMetrics): (context: Context) => Promise<Response> {
  /** The whole exposition is made before its answer begins: until then, an error can still be answered 500. */
  async function make() {
    const pieces = await render();
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const gzip = createGzip({ level: GZIP_LEVEL, chunkSize: CHUNK_BYTES });
    return { length, zipped: await pipeline(pieces, gzip, buffer) };
  }
  let underWay: ReturnType<typeof make> | undefined;

  return async (context) => {
    underWay ??= make().finally(() => {
      underWay = undefined;
    });
    const { length, zipped } = await underWay;
    context.header('content-type', 'text/plain; version=0.0.4; charset=utf-8');
    context.header('vary', 'accept-encoding');
    const encodings = { supports: ['gzip', 'identity'], default: 'identity' };
    if (accepts(context, { header: 'Accept-Encoding', ...encodings }) === 'gzip') {
      context.header('content-encoding', 'gzip');
      context.header('content-length', String(zipped.length));
      return context.body(zipped);
    }
    context.header('content-length', String(length));
    const plain = createGunzip({ chunkSize: CHUNK_BYTES });
    plain.end(zipped);
    return context.body(Readable.toWeb(plain));
  };
}

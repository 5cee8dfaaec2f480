import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';

/** Content codings. `deflate-raw` is deflate without the zlib format, as some servers send it; its header says deflate. */
export const CODINGS = ['gzip', 'br', 'zstd', 'deflate', 'deflate-raw'] as const;
export type Coding = (typeof CODINGS)[number];

const encoders: Record<Coding, (body: Buffer) => Buffer> = {
  gzip: (body) => gzipSync(body, { level: 1 }),
  br: (body) => brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: (body) => zstdCompressSync(body),
  deflate: (body) => deflateSync(body, { level: 1 }),
  'deflate-raw': (body) => deflateRawSync(body, { level: 1 }),
};

const encodedBodies = new WeakMap<Buffer, Map<Coding, Buffer>>();

/** Compresses a body. The result is cached, so that a cached listing is compressed only once. */
export function encode(body: Buffer, coding: Coding): Buffer {
  const known = encodedBodies.get(body) ?? new Map<Coding, Buffer>();
  encodedBodies.set(body, known);
  const encoded = known.get(coding) ?? encoders[coding](body);
  known.set(coding, encoded);
  return encoded;
}

/** Returns the value of the Content-Encoding header. */
export function contentEncoding(coding: Coding): string {
  return coding === 'deflate-raw' ? 'deflate' : coding;
}

/** Returns the first supported coding that an Accept-Encoding header contains; undefined if there is none. */
export function negotiate(acceptEncoding: string): Coding | undefined {
  const accepted = new Set(
    acceptEncoding
      .toLowerCase()
      .split(',')
      .filter((part) => !/;\s*q=0(\.0*)?\s*$/.test(part))
      .map((part) => part.replace(/;.*/, '').trim()),
  );
  return CODINGS.find((coding) => coding !== 'deflate-raw' && accepted.has(coding));
}

/** Creates a small gzip body that decompresses to about `bytes` spaces, by repeating one gzip member. */
export function gzipBomb(bytes: number): Buffer {
  const memberSize = 16 * 1024 * 1024;
  const member = gzipSync(Buffer.alloc(Math.min(bytes, memberSize), ' '));
  return Buffer.concat(Array<Buffer>(Math.ceil(bytes / memberSize)).fill(member));
}

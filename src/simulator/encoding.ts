import { gzipSync } from 'node:zlib';

const zippedBodies = new WeakMap<Buffer, Buffer>();

/** Compresses a body. The result is cached, so that a cached listing is compressed only once. */
export function gzip(body: Buffer): Buffer {
  const zipped = zippedBodies.get(body) ?? gzipSync(body, { level: 1 });
  zippedBodies.set(body, zipped);
  return zipped;
}

/** Returns whether an Accept-Encoding header contains gzip. */
export function acceptsGzip(acceptEncoding: string): boolean {
  return acceptEncoding
    .toLowerCase()
    .split(',')
    .filter((part) => !/;\s*q=0(\.0*)?\s*$/.test(part))
    .some((part) => part.replace(/;.*/, '').trim() === 'gzip');
}

/** Creates a small gzip body that decompresses to about `bytes` spaces, by repeating one gzip member. */
export function gzipBomb(bytes: number): Buffer {
  const memberSize = 16 * 1024 * 1024;
  const member = gzipSync(Buffer.alloc(Math.min(bytes, memberSize), ' '));
  return Buffer.concat(Array<Buffer>(Math.ceil(bytes / memberSize)).fill(member));
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import { createGunzip, type Gunzip } from 'node:zlib';
import { errors, type Dispatcher } from 'undici';
import { ApiError } from '../monitor/errors.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';
import { codeOf, connectionError } from './errors.ts';
import { cleanText, type Scrub } from './secrets.ts';

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Limit for bodies that are kept whole: details, and those of errors, which are read for what they say and to keep the connection. */
const MAX_KEPT_BYTES = 1024 * 1024;
/** Beginning of any other body that is kept to describe it, in bytes: with room for a key in it that is cut out whole. */
const KEPT_BEGINNING_BYTES = 64 * 1024;
/** Limit of interim answers, such as 103 Early Hints: a flood of them would block the event loop until the deadline. */
const MAX_INTERIM_ANSWERS = 1000;
/** A body in more chunks than this is refused if they have fewer bytes than this on average. */
const MANY_CHUNKS = 10_000;
const MIN_CHUNK_BYTES = 16;
/** Chunks that are read in one turn of the event loop, a few milliseconds: a connection can deliver 100,000 at once. */
const CHUNKS_PER_TURN = 8192;
/** The decoder passes its work to another thread for each so many decompressed bytes; by default for 16 KiB. */
const DECODED_BYTES = 64 * 1024;
/** Longest `Content-Encoding` that an error quotes, in code points. */
const MAX_CODING_LENGTH = 100;

export interface ExchangeOptions {
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Deadline for the whole exchange, body included, but without the time for which `onPiece` holds it up. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'monotonic' | 'timeout'>;
  /** Maximum size of the body of a 200 that `onPiece` takes, before and after decompression. */
  readonly maxBytes: number;
  readonly scrub: Scrub;
  /**
   * Takes the body of a 200, piece by piece and after decompression; a piece must be copied to be kept. An `ApiError` that it
   * throws ends the exchange. After a promise, which never rejects, the connection is not read until it resolves; it may still
   * deliver what it had read.
   */
  readonly onPiece?: ((piece: Buffer) => Promise<void> | undefined) | undefined;
  /** Called when the request goes out on a connection. */
  readonly onSent: () => void;
  /** Aborts the exchange and closes its connection. */
  readonly signal: AbortSignal;
}

export interface ResponseHead {
  readonly statusCode: number;
  readonly headers: Headers;
}

/** Outcome of one request. */
export interface Exchange {
  /** Status and headers; undefined without an answer. */
  readonly head: ResponseHead | undefined;
  /** Number of bytes of the body that were read, after decompression. */
  readonly bytes: number;
  /** Time that it took, without that for which `onPiece` held it up, ms. */
  readonly durationMs: number;
  /** The complete body, only its beginning if `onPiece` took it, or the error instead of it. */
  readonly body: Buffer | ApiError;
  /** Whether the service closed a kept connection instead of answering: it was idle until just before the request arrived. */
  readonly isStale: boolean;
}

/**
 * Sends one GET and reads the answer within limits of size and time (docs/specification.md#fetching). Follows no redirects.
 * Rejects only with the signal's reason.
 */
export async function exchange(
  dispatcher: Pick<Dispatcher, 'dispatch'>,
  options: ExchangeOptions,
): Promise<Exchange> {
  const { origin, path, timeoutMs, clock, maxBytes, scrub, onPiece, onSent, signal } = options;
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let controller: Dispatcher.DispatchController | undefined;
  let head: ResponseHead | undefined;
  let body: Body | undefined;
  let interimAnswers = 0;
  let pauses = 0;
  let isOver = false;
  let isStale = false;

  /** Ends the exchange with an error. The first call counts, as ending the connection causes further errors. */
  function stop(error: unknown): void {
    isOver = true;
    reject(error);
    controller?.abort(toError(error));
    body?.destroy();
  }

  const deadline = startDeadline(timeoutMs, clock, () => {
    // Without a controller, no connection was made that could send the request.
    const what = controller === undefined ? `connection to ${origin}` : 'complete answer';
    stop(new ApiError('timeout', `no ${what} within ${timeoutMs} ms`));
  });

  /** Does not read the connection before all such promises, which never reject, have resolved. */
  async function pauseUntil(ready: Promise<void>): Promise<void> {
    pauses += 1;
    controller?.pause();
    await ready;
    pauses -= 1;
    if (pauses === 0) controller?.resume();
  }

  function startBody({ statusCode, headers }: ResponseHead): Body {
    const taker = statusCode === 200 ? onPiece : undefined;
    return new Body(headers, {
      maxBytes: taker ? maxBytes : Math.min(maxBytes, MAX_KEPT_BYTES),
      maxKept: taker ? KEPT_BEGINNING_BYTES : MAX_KEPT_BYTES,
      scrub,
      onPiece: (piece) => {
        const held = taker?.(piece);
        return held && deadline.without(held);
      },
      pauseUntil: (ready) => void pauseUntil(ready),
      onEnd: resolve,
      onError: stop,
    });
  }

  const abort = () => stop(new Error('the exchange was aborted'));
  signal.addEventListener('abort', abort, { once: true });
  dispatcher.dispatch(
    { origin, path, method: 'GET', headers: { ...options.headers } },
    {
      onRequestStart: (started) => {
        // If the exchange has already ended, nothing is sent on the new connection.
        controller = started;
        if (isOver) started.abort(new Error('the exchange is over'));
        else onSent();
      },
      onResponseStart: (_, statusCode, headers) => {
        if (statusCode < 200) {
          interimAnswers += 1;
          if (interimAnswers > MAX_INTERIM_ANSWERS) stop(tooManyInterimAnswers());
          return;
        }
        head = { statusCode, headers };
        try {
          body = startBody(head);
        } catch (error) {
          stop(error);
        }
      },
      onResponseData: (_, chunk) => {
        try {
          body?.write(chunk);
        } catch (error) {
          stop(error);
        }
      },
      onResponseEnd: () => body?.end(),
      onResponseError: (_, error) => {
        isStale = head === undefined && isOfKeptConnection(error);
        stop(connectionError(error, scrub));
      },
    },
  );

  const read = (found: Buffer | ApiError): Exchange => ({
    head,
    bytes: body?.bytes ?? 0,
    durationMs: deadline.countedMs(),
    body: found,
    isStale,
  });
  try {
    return read(await promise);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError) return read(error);
    throw error;
  } finally {
    isOver = true;
    deadline.clear();
    signal.removeEventListener('abort', abort);
  }
}

/** Whether a connection was closed that had brought bytes: an earlier answer, or the beginning of this one's header. */
function isOfKeptConnection(error: unknown): boolean {
  return error instanceof errors.SocketError && (error.socket?.bytesRead ?? 0) > 0;
}

function tooManyInterimAnswers(): ApiError {
  return new ApiError(
    'invalid_response',
    `more than ${MAX_INTERIM_ANSWERS} interim answers (status 1xx) came before the answer`,
  );
}

/**
 * Starts a time limit that calls `onExpired` after `ms`, in which time that evalwatch itself takes does not count: from a call
 * of `without` until its promise, which never rejects, resolves.
 */
function startDeadline(ms: number, clock: ExchangeOptions['clock'], onExpired: () => void) {
  let left = ms;
  let startedAt = clock.monotonic();
  let timer: Timer = clock.timeout(left, onExpired);
  let holds = 0;
  let isOver = false;

  async function without(held: Promise<void>): Promise<void> {
    if (holds === 0) {
      timer.cancel();
      left -= clock.monotonic() - startedAt;
    }
    holds += 1;
    await held;
    holds -= 1;
    if (holds > 0 || isOver) return;
    startedAt = clock.monotonic();
    timer = clock.timeout(Math.max(0, left), onExpired);
  }

  return {
    without,
    /** Returns the counted time so far, ms. */
    countedMs: () => ms - left + (holds === 0 ? clock.monotonic() - startedAt : 0),
    clear: () => {
      isOver = true;
      timer.cancel();
    },
  };
}

interface BodyOptions extends Pick<ExchangeOptions, 'maxBytes' | 'scrub'> {
  readonly onPiece: NonNullable<ExchangeOptions['onPiece']>;
  /** Number of bytes of its beginning that are kept. */
  readonly maxKept: number;
  /** Called with a promise that never rejects before which nothing more should be written. */
  readonly pauseUntil: (ready: Promise<void>) => void;
  /** Called with what was kept. */
  readonly onEnd: (kept: Buffer) => void;
  /** Called with an error of the decompression, or what `onPiece` throws in the course of it. */
  readonly onError: (error: unknown) => void;
}

/** Reads the body of an answer as it comes from the connection. An uncompressed one uses no streams, which cost as much as the download. */
class Body {
  /** Number of bytes so far, after decompression. */
  bytes = 0;
  readonly #options: BodyOptions;
  readonly #gunzip: Gunzip | undefined;
  /** Bytes and chunks as they came: a compressed body can be long and turn into nothing. */
  #received = 0;
  #chunks = 0;
  /** Compressed chunks of this turn of the event loop: the decoder takes as long for a byte as for a block. */
  #joined: Buffer[] = [];
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  #lastRead: ArrayBufferLike | undefined;
  /** Whether the answer has ended, and its decompression. If zeros follow what was compressed, that ends first. */
  #isWhole = false;
  #isDecoded = false;

  /** @throws {ApiError} if the headers alone show that the body is unusable */
  constructor(headers: Headers, options: BodyOptions) {
    this.#options = options;
    if (Number(headers['content-length']) > options.maxBytes) throw tooLarge(options.maxBytes);
    if (isGzip(headers['content-encoding'], options.scrub)) this.#gunzip = this.#startGunzip();
  }

  /** @throws what `onPiece` throws, `too_large`, or `invalid_response` for a flood of tiny chunks */
  write(chunk: Buffer): void {
    const { maxBytes, pauseUntil } = this.#options;
    // With such a chunk, undici resumes a connection that has brought nothing meanwhile.
    if (chunk.length === 0) return;
    this.#received += chunk.length;
    this.#chunks += 1;
    if (this.#received > maxBytes) throw tooLarge(maxBytes);
    if (this.#chunks > MANY_CHUNKS && this.#received < this.#chunks * MIN_CHUNK_BYTES) {
      throw new ApiError(
        'invalid_response',
        `the body has more than ${MANY_CHUNKS} chunks, of fewer than ${MIN_CHUNK_BYTES} bytes on average`,
      );
    }
    if (this.#chunks % CHUNKS_PER_TURN === 0) pauseUntil(nextTurn());
    if (this.#gunzip !== undefined) {
      if (this.#joined.push(chunk) === 1) setImmediate(() => this.#decompress());
      return;
    }
    this.#freeLastRead(chunk);
    const room = this.#take(chunk);
    if (room !== undefined) pauseUntil(room);
  }

  end(): void {
    this.#isWhole = true;
    if (this.#gunzip === undefined || this.#isDecoded) return this.#finish();
    this.#decompress();
    this.#gunzip.end();
  }

  destroy(): void {
    this.#gunzip?.destroy();
  }

  #finish(): void {
    this.#options.onEnd(Buffer.concat(this.#kept));
  }

  /** Passes the chunks of this turn to the decoder. */
  #decompress(): void {
    const gunzip = this.#gunzip;
    if (gunzip === undefined || this.#joined.length === 0) return;
    const hasRoom = gunzip.write(Buffer.concat(this.#joined));
    this.#joined = [];
    if (!hasRoom) this.#options.pauseUntil(new Promise((resolve) => gunzip.once('drain', resolve)));
  }

  #startGunzip(): Gunzip {
    const { onError } = this.#options;
    const gunzip = createGunzip({ chunkSize: DECODED_BYTES });
    gunzip.on('data', (piece: Buffer) => {
      try {
        const room = this.#take(piece);
        if (room === undefined) return;
        gunzip.pause();
        void room.then(() => gunzip.resume());
      } catch (error) {
        onError(error);
      }
    });
    gunzip.on('end', () => {
      this.#isDecoded = true;
      if (this.#isWhole) this.#finish();
    });
    gunzip.on('error', (error) => {
      const message = `the body cannot be decompressed: ${codeOf(error)}`;
      onError(new ApiError('invalid_response', message));
    });
    return gunzip;
  }

  #take(piece: Buffer): Promise<void> | undefined {
    const { maxBytes, maxKept, onPiece } = this.#options;
    this.bytes += piece.length;
    if (this.bytes > maxBytes) throw tooLarge(maxBytes);
    if (this.#keptBytes < maxKept) {
      const part = Buffer.from(piece.subarray(0, maxKept - this.#keptBytes));
      this.#kept.push(part);
      this.#keptBytes += part.length;
    }
    return onPiece(piece);
  }

  /**
   * Frees the memory that the connection was read into before. Otherwise every 64 MB of it trigger a collection of the whole
   * heap, a quarter of the time that a large listing takes.
   */
  #freeLastRead({ buffer, length }: Buffer): void {
    if (buffer === this.#lastRead) return;
    const last = this.#lastRead;
    if (last instanceof ArrayBuffer && !last.detached) last.transfer(0);
    // Node shares memory among smaller buffers.
    this.#lastRead = length >= Buffer.poolSize / 2 ? buffer : undefined;
  }
}

/**
 * Returns whether a `Content-Encoding` is gzip, the only coding that was asked for, and not plain.
 * @throws {ApiError} `invalid_response`, for any other coding
 */
function isGzip(header: string | readonly string[] | undefined, scrub: Scrub): boolean {
  const coding = [header ?? []].flat().join(', ').trim();
  if (/^(?:identity)?$/i.test(coding)) return false;
  if (/^(?:x-)?gzip$/i.test(coding)) return true;
  const shown = JSON.stringify(cleanText(coding, MAX_CODING_LENGTH, scrub));
  throw new ApiError(
    'invalid_response',
    `the body has the Content-Encoding ${shown}, and only gzip was asked for`,
  );
}

function toError(error: unknown): Error {
  return error instanceof Error
    ? error
    : new Error('a value that is not an Error was thrown', { cause: error });
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError('too_large', `the body is larger than ${maxBytes} bytes`);
}

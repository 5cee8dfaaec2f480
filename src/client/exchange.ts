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
/** Beginning of any other body that is kept to describe it, in bytes: with room for a long key in it that is cut out whole. */
const KEPT_BEGINNING_BYTES = 16 * 1024;
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

/** A GET, or a POST of a body: what is sent, and within which limits its answer is read. */
export interface Get {
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent by POST. */
  readonly content?: string | undefined;
  /** Deadline for the whole exchange, body included, but without the time for which the connection is not read. */
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
  /** Time that it took, without that for which the connection was not read, ms. */
  readonly durationMs: number;
  /** The complete body, only its beginning if `onPiece` took it, or the error instead of it. */
  readonly body: Buffer | ApiError;
  /** Whether the service closed a kept connection instead of answering: it was idle until just before the request arrived. */
  readonly isStale: boolean;
}

/**
 * Sends one request and reads the answer within limits of size and time (docs/specification.md#fetching). Follows no redirects.
 * Rejects only with the signal's reason.
 */
export async function exchange(
  dispatcher: Pick<Dispatcher, 'dispatch'>,
  get: Get,
): Promise<Exchange> {
  const { origin, path, headers, content, signal } = get;
  signal.throwIfAborted();
  const answer = new Answer(get);
  const abort = () => answer.stop(new Error('the exchange was aborted'));
  signal.addEventListener('abort', abort, { once: true });
  const sent = content === undefined ? { method: 'GET' } : { method: 'POST', body: content };
  dispatcher.dispatch({ origin, path, headers: { ...headers }, ...sent }, answer);
  try {
    return answer.read(await answer.whole);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError) return answer.read(error);
    throw error;
  } finally {
    answer.close();
    signal.removeEventListener('abort', abort);
  }
}

/** Reads the answer of one exchange as undici delivers it. */
class Answer implements Dispatcher.DispatchHandler {
  readonly #get: Get;
  readonly #whole = Promise.withResolvers<Buffer>();
  #controller: Dispatcher.DispatchController | undefined;
  #head: ResponseHead | undefined;
  #body: Body | undefined;
  #interimAnswers = 0;
  #isOver = false;
  #isStale = false;
  /** Part of the time limit that was left when the deadline was set, ms. */
  #leftMs: number;
  #startedAt = 0;
  #deadline: Timer | undefined;
  #holds = 0;

  constructor(get: Get) {
    this.#get = get;
    this.#leftMs = get.timeoutMs;
    this.#setDeadline();
  }

  /** Resolves to what is kept of the body; rejects with what ends the exchange. */
  get whole(): Promise<Buffer> {
    return this.#whole.promise;
  }

  read(body: Exchange['body']): Exchange {
    return {
      head: this.#head,
      bytes: this.#body?.bytes ?? 0,
      durationMs: this.#get.timeoutMs - this.#restMs(),
      body,
      isStale: this.#isStale,
    };
  }

  /** Ends the exchange with an error. The first call counts, as ending the connection causes further errors. */
  stop(error: unknown): void {
    this.#whole.reject(error);
    this.#isOver = true;
    this.#controller?.abort(new Error('the exchange is over'));
    this.#body?.destroy();
  }

  end(kept: Buffer): void {
    this.#whole.resolve(kept);
  }

  close(): void {
    this.#isOver = true;
    this.#deadline?.cancel();
  }

  /** Neither reads the connection nor counts the time before all such promises, which never reject, have resolved. */
  async holdUntil(ready: Promise<void>): Promise<void> {
    if (this.#holds === 0) {
      this.#leftMs = this.#restMs();
      this.#deadline?.cancel();
    }
    this.#holds += 1;
    this.#controller?.pause();
    await ready;
    this.#holds -= 1;
    if (this.#holds > 0) return;
    this.#controller?.resume();
    if (!this.#isOver) this.#setDeadline();
  }

  #setDeadline(): void {
    const { origin, timeoutMs, clock } = this.#get;
    this.#startedAt = clock.monotonic();
    this.#deadline = clock.timeout(Math.max(0, this.#leftMs), () => {
      // Without a controller, no connection was made that could send the request.
      const isConnected = this.#controller !== undefined;
      const what = isConnected ? 'complete answer' : `connection to ${origin}`;
      this.stop(new ApiError('timeout', `no ${what} within ${timeoutMs} ms`));
    });
  }

  #restMs(): number {
    const passedMs = this.#holds === 0 ? this.#get.clock.monotonic() - this.#startedAt : 0;
    return this.#leftMs - passedMs;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // If the exchange has already ended, nothing is sent on the new connection.
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('the exchange is over'));
    else this.#get.onSent();
  }

  onResponseStart(_: unknown, statusCode: number, headers: Headers): void {
    if (statusCode < 200) {
      this.#interimAnswers += 1;
      if (this.#interimAnswers > MAX_INTERIM_ANSWERS) this.stop(tooManyInterimAnswers());
      return;
    }
    this.#head = { statusCode, headers };
    try {
      this.#body = this.#startBody(this.#head);
    } catch (error) {
      this.stop(error);
    }
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    try {
      this.#body?.write(chunk);
    } catch (error) {
      this.stop(error);
    }
  }

  onResponseEnd(): void {
    this.#body?.end();
  }

  onResponseError(_: unknown, error: Error): void {
    this.#isStale = this.#head === undefined && isOfKeptConnection(error);
    this.stop(connectionError(error, this.#get.scrub));
  }

  #startBody({ statusCode, headers }: ResponseHead): Body {
    const { maxBytes, scrub, onPiece } = this.#get;
    const taker = statusCode === 200 ? onPiece : undefined;
    const limit = taker ? maxBytes : Math.min(maxBytes, MAX_KEPT_BYTES);
    if (Number(headers['content-length']) > limit) throw tooLarge(limit);
    const isGzipped = isGzip(headers['content-encoding'], scrub);
    return new Body(this, isGzipped, limit, taker);
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

/** Reads the body of an answer as it comes from the connection. An uncompressed one uses no streams, which cost as much as the download. */
class Body {
  /** Number of bytes so far, after decompression. */
  bytes = 0;
  readonly #answer: Answer;
  readonly #maxBytes: number;
  readonly #onPiece: Get['onPiece'];
  /** Number of bytes of its beginning that are kept. */
  readonly #maxKept: number;
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

  /** Without `onPiece`, all of it is kept. */
  constructor(answer: Answer, isGzipped: boolean, maxBytes: number, onPiece: Get['onPiece']) {
    this.#answer = answer;
    this.#maxBytes = maxBytes;
    this.#onPiece = onPiece;
    this.#maxKept = onPiece === undefined ? maxBytes : KEPT_BEGINNING_BYTES;
    if (isGzipped) this.#gunzip = this.#startGunzip();
  }

  /** @throws what `onPiece` throws, `too_large`, or `invalid_response` for a flood of tiny chunks */
  write(chunk: Buffer): void {
    // With such a chunk, undici resumes a connection that has brought nothing meanwhile.
    if (chunk.length === 0) return;
    this.#received += chunk.length;
    this.#chunks += 1;
    if (this.#received > this.#maxBytes) throw tooLarge(this.#maxBytes);
    if (this.#chunks > MANY_CHUNKS && this.#received < this.#chunks * MIN_CHUNK_BYTES) {
      throw new ApiError(
        'invalid_response',
        `the body has more than ${MANY_CHUNKS} chunks, of fewer than ${MIN_CHUNK_BYTES} bytes on average`,
      );
    }
    if (this.#chunks % CHUNKS_PER_TURN === 0) void this.#answer.holdUntil(nextTurn());
    if (this.#gunzip !== undefined) {
      if (this.#joined.push(chunk) === 1) setImmediate(() => this.#decompress());
      return;
    }
    this.#freeLastRead(chunk);
    const room = this.#take(chunk);
    if (room !== undefined) void this.#answer.holdUntil(room);
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
    this.#answer.end(Buffer.concat(this.#kept));
  }

  /** Passes the chunks of this turn to the decoder. */
  #decompress(): void {
    const gunzip = this.#gunzip;
    if (gunzip === undefined || this.#joined.length === 0) return;
    const hasRoom = gunzip.write(Buffer.concat(this.#joined));
    this.#joined = [];
    if (hasRoom) return;
    void this.#answer.holdUntil(new Promise((resolve) => gunzip.once('drain', resolve)));
  }

  #startGunzip(): Gunzip {
    const gunzip = createGunzip({ chunkSize: DECODED_BYTES });
    gunzip.on('data', (piece: Buffer) => {
      try {
        const room = this.#take(piece);
        if (room === undefined) return;
        gunzip.pause();
        void this.#answer.holdUntil(room).then(() => gunzip.resume());
      } catch (error) {
        this.#answer.stop(error);
      }
    });
    gunzip.on('end', () => {
      this.#isDecoded = true;
      if (this.#isWhole) this.#finish();
    });
    gunzip.on('error', (error) => {
      const message = `the body cannot be decompressed: ${codeOf(error)}`;
      this.#answer.stop(new ApiError('invalid_response', message));
    });
    return gunzip;
  }

  #take(piece: Buffer): Promise<void> | undefined {
    this.bytes += piece.length;
    if (this.bytes > this.#maxBytes) throw tooLarge(this.#maxBytes);
    if (this.#keptBytes < this.#maxKept) {
      const part = Buffer.from(piece.subarray(0, this.#maxKept - this.#keptBytes));
      this.#kept.push(part);
      this.#keptBytes += part.length;
    }
    return this.#onPiece?.(piece);
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

function tooLarge(maxBytes: number): ApiError {
  return new ApiError('too_large', `the body is larger than ${maxBytes} bytes`);
}

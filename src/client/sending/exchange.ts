import { errors, type Dispatcher } from 'undici';
import { ApiError } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import { createBodyReader, type BodyReader, type Headers } from './body.ts';
import { createByteBuffer } from './byte-buffer.ts';
import { createDeadline } from './deadline.ts';
import { connectionError } from '../errors.ts';
import { KEPT_BEGINNING_BYTES } from '../unusable.ts';
import type { Scrub } from '../../domain/scrub.ts';

/** Limit for bodies that are kept whole: details, and those of errors, which are read for what they say and to keep the connection. */
const MAX_KEPT_BYTES = 1024 * 1024;
/**
 * Chunks read in one turn of the event loop, a few milliseconds: a connection can deliver hundreds of thousands at
 * once.
 */
const MAX_CHUNKS_PER_TURN = 16_384;
/** Limit of interim answers, such as 103 Early Hints: a flood of them would block the event loop until the deadline. */
const MAX_INTERIM_ANSWERS = 1000;

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
   * Takes the body of a 200 instead of the exchange, piece by piece and after decompression. An `ApiError` that it throws ends
   * the exchange. After a promise, which never rejects, the connection is not read until it resolves; it may still
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
  const { origin, path, headers, maxBytes, onPiece, signal, scrub } = options;
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let controller: Dispatcher.DispatchController | undefined;
  let head: ResponseHead | undefined;
  let reader: BodyReader | undefined;
  const kept = createByteBuffer();
  /** Number of chunks in this turn of the event loop. */
  let chunks = 0;
  let interimAnswers = 0;
  /** Whether the reader currently has no room. */
  let isFull = false;
  let isOver = false;
  let isStale = false;
  const memory = createReadMemory();

  const bytesRead = () => reader?.bytes() ?? 0;

  /** Ends the exchange with an error. The first call counts, as ending the connection causes further errors. */
  function stop(error: Error): void {
    isOver = true;
    reject(error);
    controller?.abort(error);
    reader?.destroy();
  }

  const deadline = createDeadline(options.timeoutMs, options.clock, () => {
    // Without a controller, no connection was made that could send the request.
    const what = controller === undefined ? `connection to ${origin}` : 'complete answer';
    stop(new ApiError('timeout', `no ${what} within ${options.timeoutMs} ms`));
  });
  const abort = () => stop(new Error('the exchange was aborted'));
  signal.addEventListener('abort', abort, { once: true });

  dispatcher.dispatch(
    { origin, path, method: 'GET', headers: { ...headers } },
    {
      onRequestStart: (started) => {
        // If the exchange has already ended, nothing is sent on the new connection.
        controller = started;
        if (isOver) started.abort(new Error('the exchange is over'));
        else options.onSent();
      },
      onResponseStart: (responding, statusCode, responseHeaders) => {
        if (statusCode < 200) {
          interimAnswers += 1;
          if (interimAnswers > MAX_INTERIM_ANSWERS) stop(tooManyInterimAnswers());
          return;
        }
        head = { statusCode, headers: responseHeaders };
        const taker = statusCode === 200 ? onPiece : undefined;
        try {
          reader = createBodyReader({
            headers: responseHeaders,
            maxBytes: taker ? maxBytes : Math.min(maxBytes, MAX_KEPT_BYTES),
            scrub,
            onPiece: (piece) => {
              if (taker) {
                kept.append(piece, 0, Math.min(piece.length, KEPT_BEGINNING_BYTES - kept.length()));
                const room = taker(piece);
                return room && deadline.without(room);
              }
              kept.append(piece);
              return undefined;
            },
            onEnd: () => resolve(kept.take()),
            onError: stop,
            onDrain: () => {
              isFull = false;
              if (chunks < MAX_CHUNKS_PER_TURN) responding.resume();
            },
          });
        } catch (error) {
          stop(
            error instanceof Error
              ? error
              : new Error('a value that is not an Error was thrown', { cause: error }),
          );
        }
      },
      onResponseData: (receiving, chunk) => {
        memory.use(chunk);
        isFull = reader?.write(chunk) === false;
        if (chunks === 0) {
          setImmediate(() => {
            chunks = 0;
            if (!isFull) receiving.resume();
          });
        }
        chunks += 1;
        if (isFull || chunks === MAX_CHUNKS_PER_TURN) receiving.pause();
      },
      onResponseEnd: () => {
        reader?.end();
      },
      onResponseError: (_, error) => {
        isStale = head === undefined && isOfKeptConnection(error);
        stop(connectionError(error, scrub));
      },
    },
  );

  try {
    const body = await promise;
    return { head, bytes: bytesRead(), durationMs: deadline.countedMs(), body, isStale };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ApiError)) throw error;
    return { head, bytes: bytesRead(), durationMs: deadline.countedMs(), body: error, isStale };
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
 * Frees the memory that a connection was read into when the next read arrives. Otherwise every 64 MB of it trigger a
 * collection of the whole heap, which costs more than all other processing of a body.
 */
function createReadMemory() {
  let last: ArrayBufferLike | undefined;
  return {
    /** Called with each chunk before its bytes are copied or read. */
    use: (chunk: Buffer) => {
      if (chunk.buffer === last) return;
      if (last instanceof ArrayBuffer && !last.detached) last.transfer(0);
      // Node shares memory among smaller buffers.
      last = chunk.length >= Buffer.poolSize / 2 ? chunk.buffer : undefined;
    },
  };
}

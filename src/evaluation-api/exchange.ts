import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { ApiError } from '../monitor/errors.ts';
import { readBody, type Headers } from './body.ts';
import { connectionError } from './errors.ts';

/** Of a body that is no listing: a 422's tells what is wrong, the others are read to keep the connection. */
const MOST_ERROR_BYTES = 1024 * 1024;
/** How much may wait between the socket and the decoders. */
const BUFFERED_BYTES = 1024 * 1024;

export interface ExchangeOptions {
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** From now until the body is read. */
  readonly timeoutMs: number;
  /** Of the body of a 200, after decompression. */
  readonly maxBytes: number;
  readonly scrub: (text: string) => string;
  /** Called when the request really goes out. */
  readonly onSent: () => void;
  /** Ends the exchange, and its connection with it. */
  readonly signal: AbortSignal;
}

export interface ResponseHead {
  readonly statusCode: number;
  readonly headers: Headers;
}

/** What came of one request. */
export interface Exchange {
  /** Undefined if it got no answer. */
  readonly head: ResponseHead | undefined;
  /** Of the body, after decompression, as far as it was read. */
  readonly bytes: number;
  /** Or why there is none that is whole and sound. */
  readonly body: Buffer | ApiError;
}

/**
 * Sends one GET and reads the answer, never beyond its size and time (contract 4, Fetching). Follows nothing. Rejects only
 * with the signal's reason.
 */
export async function exchange(
  dispatcher: Dispatcher,
  options: ExchangeOptions,
): Promise<Exchange> {
  const { maxBytes, signal, scrub } = options;
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let controller: Dispatcher.DispatchController | undefined;
  let head: ResponseHead | undefined;
  let bytes = 0;
  const count = (more: number) => {
    bytes += more;
  };
  const over = new AbortController();

  const source = new Readable({
    highWaterMark: BUFFERED_BYTES,
    read: () => controller?.resume(),
    destroy: (error, done) => {
      controller?.abort(error ?? new Error('nobody reads on'));
      done(error);
    },
  });
  // Whoever waits is told by `stop`; unheard, this event would end the process.
  source.on('error', () => {});

  function stop(error: Error): void {
    reject(error);
    source.destroy(error);
    over.abort();
  }

  const timer = setTimeout(() => {
    stop(new ApiError('timeout', `no whole answer within ${options.timeoutMs} ms`));
  }, options.timeoutMs);
  const abort = () => stop(new Error('the exchange was aborted'));
  signal.addEventListener('abort', abort, { once: true });

  const { origin, path, headers } = options;
  dispatcher.dispatch(
    { origin, path, method: 'GET', headers: { ...headers } },
    {
      onRequestStart: (started) => {
        // The connection may have come too late: then nothing is written to it.
        controller = started;
        if (over.signal.aborted) started.abort(new Error('the exchange is over'));
        else options.onSent();
      },
      onResponseStart: (_, statusCode, responseHeaders) => {
        if (statusCode < 200) return;
        head = { statusCode, headers: responseHeaders };
        const mostBytes = statusCode === 200 ? maxBytes : Math.min(maxBytes, MOST_ERROR_BYTES);
        const reading = { source, headers: responseHeaders, mostBytes, count, signal: over.signal };
        readBody(reading).then(resolve, stop);
      },
      onResponseData: (receiving, chunk) => {
        if (!source.push(chunk)) receiving.pause();
      },
      onResponseEnd: () => {
        source.push(null);
      },
      onResponseError: (_, error) => {
        // Whoever destroyed the source knows better what went wrong.
        if (!source.destroyed) stop(connectionError(error, scrub));
      },
    },
  );

  try {
    const body = await promise;
    return { head, bytes, body };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ApiError)) throw error;
    return { head, bytes, body: error };
  } finally {
    over.abort();
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

import { ApiError, type ApiFailureReason } from '../../monitor/errors.ts';
import type { Endpoint, Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { ServiceSettings } from '../../monitor/ports/service.ts';
import type { Shutdown } from '../../monitor/ports/shutdown.ts';
import { requestFailure } from '../errors.ts';
import type { Connections } from './dispatcher.ts';
import { exchange, type Exchange, type ResponseHead } from './exchange.ts';
import type { Gate, RequestClass } from '../gate.ts';
import { readReply, withRequest } from './reply.ts';
import type { ApiKey } from '../api-key.ts';
import type { Scrub } from '../../domain/scrub.ts';
import { cleanText } from '../text.ts';
import { describeUnusable } from '../unusable.ts';

/** Failures after which the name of the service is resolved anew, as it may have moved. */
const RENEWING: ReadonlySet<ApiFailureReason> = new Set(['server_error', 'timeout', 'network']);
/** Shortest time between such renewals, however many requests fail. */
const RENEW_EVERY_MS = 10_000;

/** Longest address of a request in an error, in code points. */
const MAX_URL_LENGTH = 2048;

export interface SenderOptions extends Pick<
  ServiceSettings,
  'baseUrl' | 'timeoutMs' | 'maxResponseBytes'
> {
  /** Version of evalwatch, for the `User-Agent`. */
  readonly version: string;
  readonly connections: Connections;
  readonly gate: Gate;
  readonly clock: Clock;
  readonly emit: Observer;
}

export interface ApiRequest<T> {
  readonly endpoint: Endpoint;
  /** Path below the base URL. */
  readonly path: string;
  readonly key: ApiKey;
  /** ETag for a conditional request, which the service may answer with 304. */
  readonly etag?: string | undefined;
  readonly requestClass: RequestClass;
  readonly signal: Shutdown;
  /** Called when the request gets its slot. */
  readonly onStart?: () => void;
  /** Takes the body of a 200 as it arrives (see `ExchangeOptions`). */
  readonly onPiece?: (piece: Buffer) => Promise<void> | undefined;
  /** Converts the body of a 200, only its beginning if `onPiece` took it, or undefined for a 304 to `etag`. @throws {ApiError} */
  readonly interpret: (body: Buffer | undefined, head: ResponseHead | undefined) => T | Promise<T>;
}

/**
 * Sends one request: waits for the gate, sends, reads the answer and emits events. Fails at once while the service has asked
 * to wait with this key. Rejects with the signal's reason when it aborts.
 * @throws {ApiError}
 */
export type Sender = <T>(request: ApiRequest<T>) => Promise<T>;

export function createSender(options: SenderOptions): Sender {
  const { timeoutMs, connections, gate, clock, emit } = options;
  const { origin, pathname } = new URL(options.baseUrl);
  const basePath = pathname === '/' ? '' : pathname;
  const usualHeaders = {
    accept: 'application/json',
    'accept-encoding': 'gzip',
    'user-agent': `evalwatch/${options.version}`,
  };

  return async ({
    endpoint,
    path,
    key,
    etag,
    requestClass,
    signal,
    onStart,
    onPiece,
    interpret,
  }) => {
    const { scrub } = key;
    const pass = await gate.enter(requestClass, key.text, signal.waits);
    try {
      onStart?.();
      const sendWithin = (limitMs: number) =>
        exchange(connections, {
          origin,
          path: `${basePath}${path}`,
          headers: {
            ...usualHeaders,
            'x-api-key': key.text,
            ...(etag !== undefined && { 'if-none-match': etag }),
          },
          timeoutMs: limitMs,
          clock,
          maxBytes: options.maxResponseBytes,
          scrub,
          onPiece,
          onSent: pass.sent,
          signal: signal.requests,
        });
      let answer = await sendWithin(timeoutMs);
      let { durationMs } = answer;
      if (answer.isStale && durationMs < timeoutMs) {
        // Most likely the service has not read the request. Others of these connections may be idle for as long.
        connections.renew();
        answer = await sendWithin(Math.ceil(timeoutMs - durationMs));
        durationMs += answer.durationMs;
      }
      const { head, bytes } = answer;
      if (head !== undefined) {
        emit({ type: 'api.responded', endpoint, statusCode: head.statusCode });
      }
      let failure: ApiError | undefined;
      try {
        const conditional = etag !== undefined;
        return await interpret(readReply(answer, { conditional, scrub, now: clock.now() }), head);
      } catch (error) {
        if (error instanceof ApiError) {
          const url = cleanText(`${origin}${basePath}${path}`, MAX_URL_LENGTH, scrub);
          failure = withRequest(describe(error, answer, { endpoint, scrub }), { url, head });
          gate.hold(key.text, failure);
          if (RENEWING.has(failure.reason)) connections.renew(RENEW_EVERY_MS);
        }
        throw failure ?? error;
      } finally {
        const reason = failure && requestFailure(failure.reason);
        emit({ type: 'api.request_finished', endpoint, durationMs, bytes, failure: reason });
      }
    } finally {
      pass.release();
    }
  };
}

/** Returns the error with what came instead, if it is that of a 200 that cannot be used. */
function describe(
  error: ApiError,
  { head, body }: Exchange,
  { endpoint, scrub }: { readonly endpoint: Endpoint; readonly scrub: Scrub },
): ApiError {
  const isBody = head?.statusCode === 200 && Buffer.isBuffer(body);
  if (!isBody || error.reason !== 'invalid_response') return error;
  const wanted = endpoint === 'get_prompt' ? 'object' : 'array';
  return describeUnusable(error, { headers: head.headers, beginning: body, wanted }, scrub);
}

import { isUtf8 } from 'node:buffer';
import type { Dispatcher } from 'undici';
import { ApiError, type ApiErrorDetails, type ApiFailureReason } from '../monitor/errors.ts';
import { type Endpoint, type Observer, REQUEST_FAILURE_REASONS } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { RateLimit, ServiceSettings, Shutdown } from '../monitor/ports/service.ts';
import type { ApiKey } from './api-key.ts';
import { Connections, createDispatcher } from './connections.ts';
import { describeUnusable } from './errors.ts';
import { exchange, type Exchange, type ResponseHead } from './exchange.ts';
import { createRateLimit, Gate, type RequestClass } from './gate.ts';
import { isObject, parseJson } from './json.ts';
import { parseRetryAfter } from './retry.ts';
import { cleanText, type Scrub } from './secrets.ts';

/** Failures after which the name of the service is resolved anew, as it may have moved. */
const RENEWING: ReadonlySet<ApiFailureReason> = new Set(['server_error', 'timeout', 'network']);
/** Shortest time between such renewals, however many requests fail. */
const RENEW_EVERY_MS = 10_000;
/** Status codes whose `Retry-After` is followed; some services answer 403 when a key has sent too many requests. */
const MAY_ASK_TO_WAIT: ReadonlySet<number> = new Set([403, 429, 503]);

/** Limits in code points of what an error quotes. */
const MAX_URL_LENGTH = 2048;
const MAX_LOCATION_LENGTH = 1024;
const MAX_DETAIL_LENGTH = 2048;
const MAX_ETAG_LENGTH = 1024;

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
  readonly onStart: () => void;
  /** Takes the body of a 200 as it arrives (see `Get`). */
  readonly onPiece?: (piece: Buffer) => Promise<void> | undefined;
  /** Converts the body of a 200, only its beginning if `onPiece` took it, or undefined for a 304 to `etag`. @throws {ApiError} */
  readonly interpret: (body: Buffer | undefined, head: ResponseHead | undefined) => T | Promise<T>;
}

export interface SenderOptions {
  readonly service: ServiceSettings;
  readonly clock: Clock;
  readonly emit: Observer;
  /** Version of evalwatch, for the `User-Agent`. */
  readonly version: string;
  /** Rate limit shared with other processes; by default this process applies `maxRequestsPerSecond` alone. */
  readonly rateLimit?: RateLimit | undefined;
  /** Sends the requests; by default over connections of its own. */
  readonly dispatcher?: Dispatcher | undefined;
}

/** Sends requests within the limits of the service, over its connections. */
export class Sender {
  readonly connections: Connections;
  readonly #options: SenderOptions;
  readonly #origin: string;
  readonly #basePath: string;
  readonly #gate: Gate;

  constructor(options: SenderOptions) {
    const { service, clock, dispatcher, rateLimit } = options;
    const { origin, pathname } = new URL(service.baseUrl);
    const open = () => dispatcher ?? createDispatcher({ ...service, origin });
    const rate = rateLimit ?? createRateLimit(service.maxRequestsPerSecond, clock);
    this.connections = new Connections(open, clock);
    this.#options = options;
    this.#origin = origin;
    this.#basePath = pathname === '/' ? '' : pathname;
    this.#gate = new Gate(service.maxConcurrency, rate, clock);
  }

  /**
   * Sends one request: waits for the gate, sends, reads the answer and emits events. Rejects with the signal's reason when it
   * aborts.
   * @throws {ApiError}
   */
  async send<T>(request: ApiRequest<T>): Promise<T> {
    const { endpoint, key, etag, requestClass, signal, onStart, interpret } = request;
    const { clock, emit } = this.#options;
    const pass = await this.#gate.enter(requestClass, key.text, signal.waits);
    try {
      onStart();
      const answer = await this.#exchange(request, pass.sent);
      const { head, bytes, durationMs } = answer;
      if (head !== undefined) {
        emit({ type: 'api.responded', endpoint, statusCode: head.statusCode });
      }
      let failure: ApiError | undefined;
      try {
        const isConditional = etag !== undefined;
        return await interpret(bodyOf(answer, isConditional, key.scrub, clock.now()), head);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        failure = this.#describe(error, answer, request);
        this.#gate.hold(key.text, failure);
        if (RENEWING.has(failure.reason)) this.connections.renew(RENEW_EVERY_MS);
        throw failure;
      } finally {
        const reason = REQUEST_FAILURE_REASONS.find((each) => each === failure?.reason);
        emit({ type: 'api.request_finished', endpoint, durationMs, bytes, failure: reason });
      }
    } finally {
      pass.release();
    }
  }

  /** Sends the request, and once more on a new connection if the service closed a kept one. */
  async #exchange<T>(
    { path, key, etag, onPiece, signal }: ApiRequest<T>,
    onSent: () => void,
  ): Promise<Exchange> {
    const { service, clock, version } = this.#options;
    const { timeoutMs, maxResponseBytes } = service;
    const get = {
      origin: this.#origin,
      path: `${this.#basePath}${path}`,
      headers: {
        accept: 'application/json',
        'accept-encoding': 'gzip',
        'user-agent': `evalwatch/${version}`,
        'x-api-key': key.text,
        ...(etag !== undefined && { 'if-none-match': etag }),
      },
      timeoutMs,
      clock,
      maxBytes: maxResponseBytes,
      scrub: key.scrub,
      onPiece,
      onSent,
      signal: signal.requests,
    };
    const first = await exchange(this.connections, get);
    if (!first.isStale) return first;
    // Most likely the service has not read the request. Others of these connections may be idle for as long.
    this.connections.renew();
    return await exchange(this.connections, get);
  }

  /** Returns the error with what came instead of a usable body, the address of the request and the status code. */
  #describe<T>(
    error: ApiError,
    { head, body }: Exchange,
    { path, key: { scrub } }: ApiRequest<T>,
  ): ApiError {
    const { reason, details } = error;
    const statusCode = head?.statusCode;
    const parts = [error.message];
    if (statusCode === 200 && reason === 'invalid_response' && Buffer.isBuffer(body)) {
      const type = [head?.headers['content-type'] ?? []].flat().join(', ');
      parts.push(describeUnusable(body, type, scrub));
    }
    const url = cleanText(`${this.#origin}${this.#basePath}${path}`, MAX_URL_LENGTH, scrub);
    return new ApiError(reason, parts.join('; '), { ...details, url, statusCode });
  }
}

/**
 * Returns the body of a 200, or undefined for a 304 to a conditional request, which had an ETag (docs/specification.md#fetching).
 * @param now epoch ms
 * @throws {ApiError} for any other answer
 */
export function bodyOf(
  { head, body }: Pick<Exchange, 'head' | 'body'>,
  isConditional: boolean,
  scrub: Scrub,
  now: number,
): Buffer | undefined {
  if (head?.statusCode === 304 && isConditional) return undefined;
  if (head !== undefined && head.statusCode !== 200) throw refusal(head, body, scrub, now);
  if (body instanceof ApiError) throw body;
  return body;
}

function refusal(
  { statusCode, headers }: ResponseHead,
  body: Exchange['body'],
  scrub: Scrub,
  now: number,
): ApiError {
  const retryAfterMs = MAY_ASK_TO_WAIT.has(statusCode)
    ? parseRetryAfter(headers['retry-after'], now)
    : undefined;
  const isLimited = statusCode === 403 && retryAfterMs !== undefined;
  const reason = isLimited ? 'rate_limited' : reasonOf(statusCode);
  const [location] = [headers['location'] ?? []].flat();
  const said: ApiErrorDetails =
    reason === 'redirect'
      ? { location: location && cleanText(location, MAX_LOCATION_LENGTH, scrub) }
      : { detail: body instanceof ApiError ? undefined : wordsOf(body, scrub) };
  const details = { statusCode, retryAfterMs, ...said };
  return new ApiError(reason, `the service answered ${statusCode}`, details);
}

function reasonOf(statusCode: number): ApiFailureReason {
  switch (statusCode) {
    case 401:
    case 403:
      return 'auth';
    case 404:
      return 'not_found';
    case 422:
      return 'validation';
    case 429:
      return 'rate_limited';
    case 304:
      return 'invalid_response';
  }
  if (statusCode >= 600 || statusCode < 300) return 'invalid_response';
  if (statusCode >= 500) return 'server_error';
  return statusCode >= 400 ? 'client_error' : 'redirect';
}

/**
 * Returns what the body of an error says, on one line: its `detail`, or else the body itself
 * (docs/specification.md#fetching); undefined if it is empty or not text.
 */
function wordsOf(body: Buffer, scrub: Scrub): string | undefined {
  const words = detailOf(body, scrub) ?? (isUtf8(body) ? body.toString() : '');
  // White space is joined after the scrub, because a key may contain spaces.
  const line = cleanText(words, MAX_DETAIL_LENGTH, scrub).replaceAll(/\s+/g, ' ').trim();
  // Copied, because a slice would keep the whole body in memory for as long as the error is shown.
  return line === '' ? undefined : Buffer.from(line).toString();
}

/** Returns the `detail` of a JSON body, as JSON if it is no text; undefined if there is none. */
function detailOf(body: Buffer, scrub: Scrub): string | undefined {
  try {
    const fault = parseJson(body, scrub);
    const detail = isObject(fault) ? fault['detail'] : undefined;
    return typeof detail === 'string' ? detail : JSON.stringify(detail);
  } catch (error) {
    // The body is not JSON, or nested too deep for JSON.stringify.
    if (error instanceof ApiError || error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Returns the ETag of an answer; undefined if it cannot be sent back. */
export function etagOf(head: ResponseHead | undefined): string | undefined {
  const etag = head?.headers['etag'];
  const isSane =
    typeof etag === 'string' && etag.length <= MAX_ETAG_LENGTH && /^[\x21-\x7e]+$/.test(etag);
  return isSane ? etag : undefined;
}

/** Returns whether an answer has a `Link` header with the relation `next` (RFC 8288). */
export function hasNextPage(head: ResponseHead | undefined): boolean {
  const links = [head?.headers['link'] ?? []].flat().join(', ');
  return /;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next[\s"]|next\b)/i.test(links);
}

import type { Dispatcher } from 'undici';
import { onAbort } from '../concurrency/on-abort.ts';
import type { SecretSource } from '../domain/options.ts';
import type { Kind } from '../domain/status.ts';
import { ApiError } from '../monitor/errors.ts';
import type { Endpoint, Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type {
  EvaluationService,
  ListingAnswer,
  ListOptions,
  RateLimit,
  ServiceSettings,
} from '../monitor/ports/service.ts';
import type { ApiKey, ReadApiKey } from './api-key.ts';
import { createConnections, createDispatcher } from './connections.ts';
import { readErrorInfo } from './error-info.ts';
import { createRateLimit, Gate } from './gate.ts';
import { ListingReader } from './listing/listing.ts';
import { ItemScanner } from './listing/scanner.ts';
import { RecordMemory } from './record-memory.ts';
import { type ApiRequest, createSender, etagOf, hasNextPage } from './request.ts';
import { withRetries } from './retry.ts';

export interface EvaluationServiceOptions {
  readonly service: ServiceSettings;
  /** Returns the source of a project's key; called for each request, as projects change at run time. */
  readonly keyOf: (project: string) => SecretSource | undefined;
  readonly readKey: ReadApiKey;
  readonly clock: Clock;
  readonly emit: Observer;
  /** Version of evalwatch, for the `User-Agent`. */
  readonly version: string;
  /** Rate limit shared with other processes; by default this process applies `maxRequestsPerSecond` alone. */
  readonly rateLimit?: RateLimit | undefined;
  /** Sends the requests; by default over connections of its own. */
  readonly dispatcher?: Dispatcher | undefined;
  /** Returns a random number from 0 up to, not including, 1. */
  readonly random?: (() => number) | undefined;
}

/** An {@link EvaluationService} over HTTP. */
export interface HttpEvaluationService extends EvaluationService {
  /** Has further requests use new connections; those in flight end on the old ones. */
  renewConnections(): void;
  /** Ends all connections at once. */
  close(): Promise<void>;
}

/**
 * Creates a client of the Evaluation Service (docs/specification.md#fetching). Its calls reject only with an `ApiError`,
 * a signal's reason, or what `onRequest` throws. No error message contains a key.
 */
export function createEvaluationService(options: EvaluationServiceOptions): HttpEvaluationService {
  const { service, keyOf, readKey, clock, emit, version, random = Math.random } = options;
  const { origin } = new URL(service.baseUrl);
  const open = () => options.dispatcher ?? createDispatcher({ ...service, origin, clock });
  const connections = createConnections(open, clock);
  const rate = options.rateLimit ?? createRateLimit(service.maxRequestsPerSecond, clock);
  const gate = new Gate(service.maxConcurrency, rate, clock);
  const send = createSender({ service, version, connections, gate, clock, emit });
  const records = new RecordMemory();
  const scanner = new ItemScanner(service.maxItems);
  /** Listings that are known to have further pages. */
  const paged = new Set<string>();

  /** Sends with the current key; if it is refused and was rotated meanwhile, sends again with the new one. */
  async function withKey<T>(project: string, sendWith: (key: ApiKey) => Promise<T>): Promise<T> {
    const key = await readKey(keyOf(project));
    try {
      return await sendWith(key);
    } catch (error) {
      if (!(error instanceof ApiError && error.reason === 'auth')) throw error;
      const newer = await readKey(keyOf(project));
      if (newer.text === key.text) throw error;
      return await sendWith(newer);
    }
  }

  /** Requests a listing once, and reads it as it arrives. */
  async function listOnce(
    kind: Kind,
    request: Omit<ApiRequest<ListingAnswer>, 'onPiece' | 'interpret'>,
    { previous, allowDifference }: ListOptions,
    onNextPage: () => void,
  ): Promise<ListingAnswer> {
    const { scrub } = request.key;
    const memory = records.readListing(request.requestClass === 'failing');
    let reader: ListingReader | undefined;
    // Created with the first piece, as many answers are a 304 without a body.
    const read = () => {
      reader ??= new ListingReader({ kind, previous, allowDifference, scrub, scanner, memory });
      return reader;
    };
    // A shutdown does not wait for the store.
    const stopListening = onAbort(request.signal.requests, () => memory.end());
    try {
      return await send({
        ...request,
        onPiece: (piece) => read().push(piece),
        interpret: async (body, head) => {
          if (body === undefined) return { unchanged: true, full: false };
          if (hasNextPage(head)) onNextPage();
          return await read().finish(etagOf(head), request.signal.requests);
        },
      });
    } finally {
      stopListening();
      memory.end();
    }
  }

  return {
    list: async (project, kind, wanted) => {
      const { etag, isFailing, onRequest, signal } = wanted;
      signal.waits.throwIfAborted();
      const path = `/v2/projects/${segmentOf(project)}/${kind}s/`;
      const endpoint = kind === 'prompt' ? 'list_prompts' : 'list_datasets';
      const emitRetry = emitRetries(endpoint, emit);
      const onStart = () => {
        onRequest();
        emitRetry();
      };
      const onNextPage = () => {
        if (paged.has(path)) return;
        paged.add(path);
        emit({ type: 'listing.paged', project, kind });
      };
      const attempt = async (number: number) =>
        await withKey(project, async (key) => {
          const requestClass = isFailing || number > 1 ? 'failing' : 'healthy';
          const request = { endpoint, path, key, etag, requestClass, signal, onStart } as const;
          return await listOnce(kind, request, wanted, onNextPage);
        });
      return await withRetries(attempt, {
        retries: service.retries,
        signal,
        clock,
        random,
        onWait: ({ reason, details: { statusCode } }, number, delayMs) => {
          const type = 'api.retry_scheduled';
          emit({ type, project, endpoint, attempt: number, delayMs, reason, statusCode });
        },
      });
    },

    getErrorInfo: async (project, promptId, signal) => {
      signal.waits.throwIfAborted();
      const path = `/v2/prompts/${segmentOf(promptId)}/`;
      const endpoint = 'get_prompt';
      const onStart = emitRetries(endpoint, emit);
      return await withKey(project, async (key) => {
        const interpret = (body: Buffer | undefined) => body && readErrorInfo(body, key.scrub);
        return await send({
          endpoint,
          path,
          key,
          requestClass: 'detail',
          signal,
          onStart,
          interpret,
        });
      });
    },

    storing: (recordBytes) => records.storing(recordBytes),
    renewConnections: () => connections.renew(),
    close: () => connections.destroy(),
  };
}

/** Returns the function to call when a request gets its slot: each one after the first is a retry. */
function emitRetries(endpoint: Endpoint, emit: Observer): () => void {
  let isRetry = false;
  return () => {
    if (isRetry) emit({ type: 'api.retry_sent', endpoint });
    isRetry = true;
  };
}

/** Returns an id as one segment of a path; rejects `.`, `..` and ids that are not valid Unicode (docs/specification.md#requests). */
function segmentOf(id: string): string {
  if (id === '.' || id === '..' || !id.isWellFormed()) {
    throw new ApiError('invalid_response', 'the id cannot be part of a URL path');
  }
  return encodeURIComponent(id);
}

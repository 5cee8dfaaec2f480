import { onAbort } from '../concurrency/on-abort.ts';
import type { FetchedErrorInfo } from '../domain/failure.ts';
import type { SecretSource } from '../domain/options.ts';
import type { Kind } from '../domain/status.ts';
import { ApiError } from '../monitor/errors.ts';
import type { Endpoint, Observer } from '../monitor/events.ts';
import type {
  EvaluationService,
  ListingAnswer,
  ListOptions,
  Shutdown,
} from '../monitor/ports/service.ts';
import type { ApiKey, ReadApiKey } from './api-key.ts';
import { readErrorInfo } from './error-info.ts';
import { ListingReader } from './listing/listing.ts';
import { ItemScanner } from './listing/scanner.ts';
import { RecordMemory } from './record-memory.ts';
import { type ApiRequest, etagOf, hasNextPage, Sender, type SenderOptions } from './request.ts';
import { withRetries } from './retry.ts';

export interface EvaluationServiceOptions extends SenderOptions {
  /** Returns the source of a project's key; called for each request, as projects change at run time. */
  readonly keyOf: (project: string) => SecretSource | undefined;
  readonly readKey: ReadApiKey;
  /** Returns a random number from 0 up to, not including, 1. */
  readonly random?: (() => number) | undefined;
}

/**
 * Client of the Evaluation Service over HTTP (docs/specification.md#fetching). Its calls reject only with an `ApiError`,
 * a signal's reason, or what `onRequest` throws. No error message contains a key.
 */
export class HttpEvaluationService implements EvaluationService {
  readonly #options: EvaluationServiceOptions;
  readonly #sender: Sender;
  readonly #records = new RecordMemory();
  readonly #scanner: ItemScanner;
  /** Listings that are known to have further pages. */
  readonly #paged = new Set<string>();

  constructor(options: EvaluationServiceOptions) {
    this.#options = options;
    this.#sender = new Sender(options);
    this.#scanner = new ItemScanner(options.service.maxItems);
  }

  async list(project: string, kind: Kind, wanted: ListOptions): Promise<ListingAnswer> {
    const { isFailing, onRequest, signal } = wanted;
    const { service, clock, emit, random = Math.random } = this.#options;
    signal.waits.throwIfAborted();
    const path = `/v2/projects/${segmentOf(project)}/${kind}s/`;
    const endpoint = kind === 'prompt' ? 'list_prompts' : 'list_datasets';
    const emitRetry = emitRetries(endpoint, emit);
    const onStart = () => {
      onRequest();
      emitRetry();
    };
    const onNextPage = () => {
      if (this.#paged.has(path)) return;
      this.#paged.add(path);
      emit({ type: 'listing.paged', project, kind });
    };
    const attempt = async (number: number) =>
      await this.#withKey(project, async (key) => {
        const requestClass = isFailing || number > 1 ? 'failing' : 'healthy';
        const request = { ...wanted, endpoint, path, key, requestClass, onStart } as const;
        return await this.#listOnce(kind, request, onNextPage);
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
  }

  async getErrorInfo(
    project: string,
    promptId: string,
    signal: Shutdown,
  ): Promise<FetchedErrorInfo | undefined> {
    signal.waits.throwIfAborted();
    const path = `/v2/prompts/${segmentOf(promptId)}/`;
    const endpoint = 'get_prompt';
    const requestClass = 'detail';
    const onStart = emitRetries(endpoint, this.#options.emit);
    return await this.#withKey(project, async (key) => {
      const interpret = (body: Buffer | undefined) => body && readErrorInfo(body, key.scrub);
      const request = { endpoint, path, key, requestClass, signal, onStart, interpret } as const;
      return await this.#sender.send(request);
    });
  }

  storing(recordBytes: number): Disposable {
    return this.#records.storing(recordBytes);
  }

  /** Has further requests use new connections; those in flight end on the old ones. */
  renewConnections(): void {
    this.#sender.connections.renew();
  }

  /** Ends all connections at once. */
  async close(): Promise<void> {
    await this.#sender.connections.destroy();
  }

  /** Sends with the current key; if it is refused and was rotated meanwhile, sends again with the new one. */
  async #withKey<T>(project: string, sendWith: (key: ApiKey) => Promise<T>): Promise<T> {
    const { keyOf, readKey } = this.#options;
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
  async #listOnce(
    kind: Kind,
    request: Omit<ApiRequest<ListingAnswer>, 'onPiece' | 'interpret'> & ListOptions,
    onNextPage: () => void,
  ): Promise<ListingAnswer> {
    const { key, previous, allowDifference, requestClass, signal } = request;
    const memory = this.#records.readListing(requestClass === 'failing');
    const scanner = this.#scanner;
    let reader: ListingReader | undefined;
    // Created with the first piece, as many answers are a 304 without a body.
    const read = () => {
      const { scrub } = key;
      reader ??= new ListingReader({ kind, previous, allowDifference, scrub, scanner, memory });
      return reader;
    };
    // A shutdown does not wait for the store.
    const stopListening = onAbort(signal.requests, () => memory.end());
    try {
      return await this.#sender.send({
        ...request,
        onPiece: (piece) => read().push(piece),
        interpret: async (body, head) => {
          if (body === undefined) return { unchanged: true, full: false };
          if (hasNextPage(head)) onNextPage();
          return await read().finish(etagOf(head), signal.requests);
        },
      });
    } finally {
      stopListening();
      memory.end();
    }
  }
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

import type { FetchedErrorInfo } from '../../domain/failure.ts';
import type { Listing } from '../../domain/record.ts';
import type { Kind } from '../../domain/status.ts';

/** The `service` section of the configuration (docs/configuration.md#service). */
export interface ServiceSettings {
  /** Without a trailing slash, login, query or fragment; may have a path. */
  readonly baseUrl: string;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly maxConcurrency: number;
  /** 0 is no limit; may be fractional. */
  readonly maxRequestsPerSecond: number;
  readonly maxResponseBytes: number;
  /** Largest number of items in one listing. */
  readonly maxItems: number;
  /** CA certificates in PEM that are trusted instead of the usual ones: the content of `ca_file` when it was read. */
  readonly authorities: string | undefined;
  /** May hold a login. Proxies named by the environment are not used. */
  readonly proxyUrl: string | undefined;
}

/** Signals that a shutdown sends to requests in flight and to their waits (docs/specification.md#stopping). */
export interface Shutdown {
  /** Aborts every wait (for a retry, a slot, the rate) and lets requests in flight end. */
  readonly waits: AbortSignal;
  /** Aborts requests in flight as well. */
  readonly requests: AbortSignal;
}

/** Permission to send one request. */
export interface SendPermit {
  /** Records that the request goes out now. */
  sent(): void;
  /** Gives the permission back; without effect after `sent`. */
  cancelled(): void;
}

/** Limits how often requests go out. */
export interface RateLimit {
  /**
   * Returns the wait in ms before the first of `waiting` requests may be sent; Infinity while it is not known, such as while
   * another request is reserved but not sent.
   */
  delay(waiting: number): number;
  take(): SendPermit;
  /** Registers a callback that is called when the delay becomes shorter without a call from outside. */
  onShorterDelay?(wake: () => void): void;
}

/** By which a service recognises a listing when it comes again. Only the service that made it reads the rest of it. */
export interface ListingTable {
  /** Equal for the same bytes, with the same service. */
  readonly digest: string;
  /** Frees its memory, once another table has taken its place. */
  free?(): void;
}

export type ListingAnswer =
  | {
      readonly unchanged: false;
      /** With `vanished`, only the records that are new or may have changed. */
      readonly listing: Listing;
      /** Number of records in the whole listing, including those that `listing` omits. */
      readonly size: number;
      /** About the memory that `listing` takes, bytes. */
      readonly recordBytes: number;
      /**
       * Ids that the previous listing had and this one lacks. Records in neither `vanished` nor `listing` are as they were.
       * Absent if `listing` is the whole one.
       */
      readonly vanished?: readonly string[];
      readonly etag: string | undefined;
      readonly table: ListingTable;
    }
  /** The same bytes as the previous listing, possibly with a different ETag. */
  | { readonly unchanged: true; readonly full: true; readonly etag: string | undefined }
  /** A 304 to the ETag of the previous listing. */
  | { readonly unchanged: true; readonly full: false };

export interface ListOptions {
  /** Table of the last committed listing; undefined if there is none. */
  readonly previous: ListingTable | undefined;
  /** ETag to which the service may answer 304 (docs/specification.md#unchanged-listings). */
  readonly etag: string | undefined;
  /** Whether a changed listing may be answered by its difference from the previous one. */
  readonly allowDifference: boolean;
  /** Whether the project's last poll failed: its requests then queue behind those of healthy projects. */
  readonly isFailing: boolean;
  /** Called just before each request goes out, also a repeated one; the call rejects with what it throws, and sends nothing. */
  readonly onRequest: () => void;
  /** Aborts the whole call; it then rejects with the signal's reason. */
  readonly signal: Shutdown;
}

export interface EvaluationService {
  /** Lists the prompts or datasets of a project, with retries. @throws {ApiError} */
  list(project: string, kind: Kind, options: ListOptions): Promise<ListingAnswer>;
  /**
   * Requests the error_info of a prompt, without retries; undefined if the answer has none.
   * @throws {ApiError}
   */
  getErrorInfo(
    project: string,
    promptId: string,
    signal: Shutdown,
  ): Promise<FetchedErrorInfo | undefined>;
  /**
   * Counts so many bytes of records, the sum of `recordBytes` of a poll, until it is disposed of. Called when nothing but the
   * store delays the poll: while many bytes wait there, listings with new items keep their slots.
   */
  storing(recordBytes: number): Disposable;
}

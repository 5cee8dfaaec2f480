import type { ErrorInfo } from '../../domain/failure.ts';
import type { Listing } from '../../domain/record.ts';
import type { Kind } from '../../domain/status.ts';
import type { Shutdown } from './shutdown.ts';

/** What makes the next listing comparable with one that was read completely. */
export interface Validator {
  readonly etag: string | undefined;
  /** Of the body's bytes, after decompression; only the service that made it can compare it. */
  readonly digest: string;
  /** Absent if the listing was unusual, so that the next one has to be read whole. */
  readonly items?: ItemTable | undefined;
}

/** What is remembered of a listing's items, to read of the next one only what is new. */
export interface ItemTable {
  /** Two numbers for each item; only the service that made them can compare them. */
  readonly hashes: Uint32Array;
  /** The ids of the items one behind the other: to a garbage collector one text is nothing, a hundred thousand are work. */
  readonly ids: string;
  /** Where the id of each item ends. */
  readonly idEnds: Uint32Array;
  /** Of the keys that its texts were scrubbed of. */
  readonly secrets: number;
}

export type ListingAnswer =
  | {
      readonly unchanged: false;
      /** Where there is `vanished`, only the records that are new or may have changed. */
      readonly listing: Listing;
      /**
       * Ids that the listing of `previous` had and this one lacks. The records that are in neither are as they were. Absent
       * if `listing` is the whole one.
       */
      readonly vanished?: readonly string[];
      readonly validator: Validator;
    }
  /** The bytes of `previous` once more, perhaps under another ETag. */
  | { readonly unchanged: true; readonly full: true; readonly validator: Validator }
  /** A 304 to the ETag of `previous`. */
  | { readonly unchanged: true; readonly full: false; readonly validator?: never };

export interface ListOptions {
  /** Of the last listing that was committed; its items are recognised when they come again. */
  readonly previous: Validator | undefined;
  /** Whether the service may answer 304 to the ETag of `previous` (docs/specification.md#unchanged-listings). */
  readonly revalidate: boolean;
  /** The project's last poll failed: it queues behind the healthy ones. */
  readonly inTrouble: boolean;
  /** Called when the first request goes out. */
  readonly onFirstRequest: () => void;
  /** Aborts the whole call; it then rejects with the signal's reason. */
  readonly signal: Shutdown;
}

export interface EvaluationService {
  /** Lists the prompts or datasets of a project, with retries. @throws {ApiError} */
  list(project: string, kind: Kind, options: ListOptions): Promise<ListingAnswer>;
  /**
   * Asks once for the error_info of a prompt; undefined when the answer has none.
   * @throws {ApiError}
   */
  getErrorInfo(
    project: string,
    promptId: string,
    signal: Shutdown,
  ): Promise<{ readonly errorInfo: ErrorInfo; readonly errorMsgTruncated: boolean } | undefined>;
}

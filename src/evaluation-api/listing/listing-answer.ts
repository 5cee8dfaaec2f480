import type { ConcurrencyLimit } from '../../concurrency/limit-concurrency.ts';
import { takeSteps } from '../../monitor/steps.ts';
import type { Kind } from '../../domain/status.ts';
import type { ListingAnswer, ListingBasis, ListOptions } from '../../monitor/ports/service.ts';
import { createItemTable, type ItemTable } from './item-table.ts';
import { readDifference, readListing, type ListingBody } from './listing-body.ts';
import type { Secrets } from '../secrets.ts';

/** Content of a {@link ListingBasis}. */
interface Fingerprint extends ListingBasis {
  readonly etag: string | undefined;
  /** Hash of the body's bytes, after decompression; comparable only within one process. */
  readonly digest: string;
  /** Absent if the listing was unusual, so that the next one has to be read whole. */
  readonly items: ItemTable | undefined;
}

export interface AnswerOptions extends Pick<ListOptions, 'previous' | 'allowDifference'> {
  readonly kind: Kind;
  readonly body: ListingBody;
  /** ETag of this answer. */
  readonly etag: string | undefined;
  readonly secrets: Pick<Secrets, 'scrub' | 'version'>;
  /** Reads large listings one at a time. Read at the same time, ten would need ten times the memory and all end last. */
  readonly serialQueue: ConcurrencyLimit;
  /** Rejects with its reason when it aborts. */
  readonly signal: AbortSignal;
}

/** Listings with a larger body are read one after the other. */
const LARGE_BYTES = 1024 * 1024;

/**
 * Reads the body of a listing, compared with the previous one. Parses only new items if that gives the same result
 * as parsing all of them; otherwise all. Yields to the event loop in between.
 * @throws {ApiError} `invalid_response`
 */
export async function readListingAnswer(options: AnswerOptions): Promise<ListingAnswer> {
  const { body, etag, previous, serialQueue } = options;
  const { digest, ends } = body.items;
  if (isFingerprint(previous) && digest === previous.digest) {
    const basis: Fingerprint = { ...previous, etag };
    return { unchanged: true, full: true, basis };
  }
  const read = () => readAnswer(options);
  return (ends.at(-1) ?? 0) > LARGE_BYTES ? await serialQueue(read) : await read();
}

async function readAnswer(options: AnswerOptions): Promise<ListingAnswer> {
  const { kind, body, etag, previous, allowDifference, secrets, signal } = options;
  const { digest, hashes } = body.items;
  signal.throwIfAborted();
  const version = secrets.version();
  // With other keys, the texts of known items could be scrubbed differently.
  const known = allowDifference && isFingerprint(previous) ? previous.items : undefined;
  const table = known?.secrets === version ? known : undefined;
  const difference =
    table && (await takeSteps(readDifference(body, table, kind, secrets.scrub), signal));
  if (difference !== undefined) {
    const { listing, vanished, items } = difference;
    const basis: Fingerprint = { etag, digest, items };
    return { unchanged: false, listing, size: items.idEnds.length, vanished, basis };
  }
  const listing = await takeSteps(readListing(body, kind, secrets.scrub), signal);
  const isUsual = listing.anomalies.length === 0;
  const items = isUsual
    ? await takeSteps(createItemTable(hashes, listing.records.keys(), version), signal)
    : undefined;
  const basis: Fingerprint = { etag, digest, items };
  return { unchanged: false, listing, size: listing.records.size, basis };
}

/** Returns the ETag that a listing had when it was read. */
export function etagOfBasis(basis: ListingBasis | undefined): string | undefined {
  return isFingerprint(basis) ? basis.etag : undefined;
}

function isFingerprint(basis: ListingBasis | undefined): basis is Fingerprint {
  return basis !== undefined && 'digest' in basis;
}

import { takeSteps } from '../../monitor/steps.ts';
import type { Kind } from '../../domain/status.ts';
import type { ListingAnswer, Validator } from '../../monitor/ports/service.ts';
import { tableOf } from './item-table.ts';
import type { Lane } from '../fairness/lane.ts';
import { readDifference, readListing, type ListingBody } from './listing-body.ts';
import type { Secrets } from '../secrets.ts';

export interface AnswerOptions {
  readonly kind: Kind;
  readonly body: ListingBody;
  /** Of this answer. */
  readonly etag: string | undefined;
  /** Of the last listing. */
  readonly previous: Validator | undefined;
  readonly secrets: Pick<Secrets, 'scrub' | 'version'>;
  /** Of those that read large listings: ten at once take the memory of ten, and none of them is ready before all are. */
  readonly lane: Lane;
  /** Rejects with its reason when it aborts. */
  readonly signal: AbortSignal;
}

/** A listing with a larger body waits for others of its kind. */
const LARGE_BYTES = 1024 * 1024;

/**
 * What the body of a listing comes to beside the last one: only items that are new are parsed, or all of them if the outcome
 * could be another one. Others have their turn in between.
 * @throws {ApiError} `invalid_response`
 */
export async function answerWith(options: AnswerOptions): Promise<ListingAnswer> {
  const { body, etag, previous, lane } = options;
  const { digest, ends } = body.items;
  if (digest === previous?.digest) {
    return { unchanged: true, full: true, validator: { ...previous, etag } };
  }
  const read = () => readAnswer(options);
  return (ends.at(-1) ?? 0) > LARGE_BYTES ? await lane(read) : await read();
}

async function readAnswer(options: AnswerOptions): Promise<ListingAnswer> {
  const { kind, body, etag, previous, secrets, signal } = options;
  const { digest, hashes } = body.items;
  signal.throwIfAborted();
  const version = secrets.version();
  // Texts that were scrubbed of other keys are not those of today.
  const table = previous?.items?.secrets === version ? previous.items : undefined;
  const difference =
    table && (await takeSteps(readDifference(body, table, kind, secrets.scrub), signal));
  if (difference !== undefined) {
    const { listing, vanished, items } = difference;
    return { unchanged: false, listing, vanished, validator: { etag, digest, items } };
  }
  const listing = await takeSteps(readListing(body, kind, secrets.scrub), signal);
  const isUsual = listing.anomalies.length === 0;
  const items = isUsual
    ? await takeSteps(tableOf(hashes, listing.records.keys(), version), signal)
    : undefined;
  return { unchanged: false, listing, validator: { etag, digest, items } };
}

import { createRecordMemory } from '../../src/client/listing/record-memory.ts';
import { createStepQueue } from '../../src/monitor/step-queue.ts';
import type { Listing } from '../../src/domain/record.ts';
import type { Kind } from '../../src/domain/status.ts';
import { createItemScanner } from '../../src/client/listing/item-scanner.ts';
import { createListingStream } from '../../src/client/listing/listing-stream.ts';

const startScan = createItemScanner(1_000_000);

/** Reads a whole body in pieces of `pieceBytes`. @throws {ApiError} */
export async function readListing(
  body: Buffer,
  kind: Kind,
  scrub: (text: string) => string,
  pieceBytes = body.length,
): Promise<Listing> {
  const stream = createListingStream({
    kind,
    previous: undefined,
    allowDifference: false,
    scrub,
    startScan,
    steps: createStepQueue(Infinity),
    rank: 0,
    records: createRecordMemory().readListing(),
  });
  for (let at = 0; at < body.length; at += pieceBytes) {
    await stream.push(body.subarray(at, at + pieceBytes));
  }
  const answer = await stream.finish(undefined, new AbortController().signal);
  if (answer?.unchanged !== false) throw new Error('a first listing is whole');
  return answer.listing;
}

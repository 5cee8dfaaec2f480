import { ListingReader } from '../../src/client/listing/listing.ts';
import { createRecordMemory } from '../../src/client/listing/record-memory.ts';
import { createItemScanner } from '../../src/client/listing/scanner.ts';
import type { Listing } from '../../src/domain/record.ts';
import type { Kind } from '../../src/domain/status.ts';

const startScan = createItemScanner(1_000_000);

/** Reads a whole body in pieces of `pieceBytes`. @throws {ApiError} */
export async function readListing(
  body: Buffer,
  kind: Kind,
  scrub: (text: string) => string,
  pieceBytes = body.length,
): Promise<Listing> {
  const reader = new ListingReader({
    kind,
    previous: undefined,
    allowDifference: false,
    scrub,
    startScan,
    memory: createRecordMemory().readListing(false),
  });
  for (let at = 0; at < body.length; at += pieceBytes) {
    await reader.push(body.subarray(at, at + pieceBytes));
  }
  const answer = await reader.finish(undefined, new AbortController().signal);
  if (answer.unchanged) throw new Error('a first listing is whole');
  return answer.listing;
}

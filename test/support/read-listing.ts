import { ListingReader } from '../../src/client/listing/listing.ts';
import { RecordMemory } from '../../src/client/record-memory.ts';
import { ItemScanner } from '../../src/client/listing/scanner.ts';
import type { Listing } from '../../src/domain/record.ts';
import type { Kind } from '../../src/domain/status.ts';

const scanner = new ItemScanner(1_000_000);

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
    scanner,
    memory: new RecordMemory().readListing(false),
  });
  for (let at = 0; at < body.length; at += pieceBytes) {
    await reader.push(body.subarray(at, at + pieceBytes));
  }
  const answer = await reader.finish(undefined, new AbortController().signal);
  if (answer.unchanged) throw new Error('a first listing is whole');
  return answer.listing;
}

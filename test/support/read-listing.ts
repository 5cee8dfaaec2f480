import type { Listing } from '../../src/domain/record.ts';
import type { Kind } from '../../src/domain/status.ts';
import { createItemScanner } from '../../src/evaluation-api/listing/item-scanner.ts';
import { readListing as steps } from '../../src/evaluation-api/listing/listing-body.ts';
import { takeAtOnce } from './at-once.ts';

const startScan = createItemScanner(1_000_000);

/** A whole body, read in one go. @throws {ApiError} */
export function readListing(body: Buffer, kind: Kind, scrub: (text: string) => string): Listing {
  const scan = startScan();
  scan.push(body);
  return takeAtOnce(steps({ pieces: [body], items: scan.finish() }, kind, scrub));
}

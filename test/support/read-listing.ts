import type { Listing } from '../../src/domain/record.ts';
import type { Kind } from '../../src/domain/status.ts';
import { createItemScanner } from '../../src/evaluation-api/item-scanner.ts';
import { readListing as steps } from '../../src/evaluation-api/listing-body.ts';

const startScan = createItemScanner();

/** A whole body, read in one go. @throws {ApiError} */
export function readListing(body: Buffer, kind: Kind, scrub: (text: string) => string): Listing {
  const scan = startScan();
  scan.push(body);
  const reading = steps({ pieces: [body], items: scan.finish() }, kind, scrub);
  for (;;) {
    const step = reading.next();
    if (step.done === true) return step.value;
  }
}

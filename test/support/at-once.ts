import type { KnownListing, Listing } from '../../src/domain/record.ts';
import type { Steps } from '../../src/domain/steps.ts';
import {
  compareListing,
  type Changes,
  type DetectionOptions,
} from '../../src/domain/transition.ts';

/** Takes all steps without a pause. */
export function takeAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Compares a listing with the known records, without a pause. */
export function detectChanges(
  known: KnownListing,
  listing: Listing,
  options: DetectionOptions,
): Changes {
  return takeAtOnce(compareListing(known, listing, options));
}

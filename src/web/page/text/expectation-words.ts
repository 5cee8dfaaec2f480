import type { StateExpectation } from '../../../domain/expectation.ts';
import { preciseDuration } from './time.ts';

/** `usually 20 min, limit 1 h (learned)`, `no limit`. */
export function expectationText({ limitMs, source, typicalMs }: StateExpectation): string {
  const usual = typicalMs === undefined ? '' : `usually ${preciseDuration(typicalMs)}, `;
  const limit =
    limitMs === undefined ? 'no limit' : `limit ${preciseDuration(limitMs)} (${source})`;
  return usual + limit;
}

/** `at most 20 % of finished prompts may fail`. */
export function objectiveText(maxFailureRatio: number | undefined): string {
  if (maxFailureRatio === undefined) return 'none';
  return `at most ${Number((maxFailureRatio * 100).toFixed(2))} % of finished prompts may fail`;
}

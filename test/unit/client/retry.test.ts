import { describe, expect, it } from 'vitest';
import { delayBefore } from '../../../src/client/retry.ts';
import {
  ApiError,
  type ApiErrorDetails,
  type ApiFailureReason,
} from '../../../src/monitor/errors.ts';

function error(reason: ApiFailureReason, details?: ApiErrorDetails): ApiError {
  return new ApiError(reason, 'as the test wants it', details);
}

describe('the delay before a retry', () => {
  it.each([
    [1, 250, 500],
    [2, 500, 1000],
    [4, 2000, 4000],
    [10, 5000, 10_000],
    [5000, 5000, 10_000],
  ])('after attempt %i is %i to %i ms', (attempt, least, most) => {
    expect(delayBefore(error('network'), attempt, 0)).toBe(least);
    expect(delayBefore(error('network'), attempt, 1)).toBe(most);
  });

  it('is at least as long as Retry-After', () => {
    expect(delayBefore(error('rate_limited', { retryAfterMs: 7000 }), 1, 1)).toBe(7000);
    expect(delayBefore(error('rate_limited', { retryAfterMs: 1 }), 1, 1)).toBe(500);
  });
});

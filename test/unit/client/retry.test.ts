import { describe, expect, it } from 'vitest';
import { delayBefore, parseRetryAfter } from '../../../src/client/retry.ts';
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

const now = Date.parse('2026-03-01T12:00:00Z');

it.each([
  ['seconds', '7', 7000],
  ['nothing to wait', '0', 0],
  ['white space around it', ' 7 ', 7000],
  ['more than five minutes', '86400', 300_000],
  ['a number beyond all measure', '9'.repeat(400), 300_000],
  ['a date', 'Sun, 01 Mar 2026 12:00:08 GMT', 8000],
  ['a date of the old form', 'Sunday, 01-Mar-26 12:00:08 GMT', 8000],
  ['a date far away', 'Mon, 01 Mar 2027 12:00:08 GMT', 300_000],
  ['a date that has passed', 'Sun, 01 Mar 2026 11:59:59 GMT', 0],
  ['a negative number', '-5', undefined],
  ['a fraction', '299.997', 300_000],
  ['a small fraction', '0.2', 1000],
  ['a date without a zone', 'Sun, 01 Mar 2026 12:00:08', undefined],
  ['a date without a zone or a weekday', 'Mar 01 2026 12:00:08', undefined],
  ['no such date', 'Sun, 99 Xxx 2026 12:00:08 GMT', undefined],
  ['words', 'soon', undefined],
  ['an empty text', '', undefined],
  ['no header', undefined, undefined],
  ['the first of several', ['3', '9'], 3000],
])('parseRetryAfter handles %s', (_, header, expected) => {
  expect(parseRetryAfter(header, now)).toBe(expected);
});

import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import {
  delayBefore,
  shouldRetry,
  withRetries,
} from '../../../src/evaluation-api/sending/retry.ts';
import {
  API_FAILURE_REASONS,
  ApiError,
  type ApiErrorDetails,
  type ApiFailureReason,
} from '../../../src/monitor/errors.ts';

function error(reason: ApiFailureReason, details?: ApiErrorDetails): ApiError {
  return new ApiError(reason, 'as the test wants it', details);
}

describe('shouldRetry', () => {
  it('accepts only the reasons rate_limited, server_error, timeout and network', () => {
    const retried = API_FAILURE_REASONS.filter((reason) => shouldRetry(error(reason)));
    expect(retried).toEqual(['rate_limited', 'server_error', 'timeout', 'network']);
  });

  it.each([
    ['a 408', error('client_error', { statusCode: 408 }), true],
    ['a 400', error('client_error', { statusCode: 400 }), false],
    ['a wait of 10 s', error('rate_limited', { retryAfterMs: 10_000 }), true],
    ['a longer one', error('rate_limited', { retryAfterMs: 11_000 }), false],
  ])('considers the status code and Retry-After of %s: %o', (_, failure, expected) => {
    expect(shouldRetry(failure)).toBe(expected);
  });
});

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

describe('withRetries', () => {
  const policy = (controller = new AbortController()) => ({
    clock: systemClock,
    retries: 2,
    signal: { waits: controller.signal },
    random: () => 0,
    onFailure: () => {},
    onWait: () => {},
  });

  it('rejects with the error of the last attempt', async () => {
    let attempts = 0;
    const failing = withRetries(async (number) => {
      attempts = number;
      throw error('network', { statusCode: number });
    }, policy());
    await expect(failing).rejects.toMatchObject({ details: { statusCode: 3 } });
    expect(attempts).toBe(3);
  });

  it('rejects at once with an error that is not an ApiError, even if it looks like a network error', async () => {
    const mistake = new TypeError('fetch failed');
    let attempts = 0;
    const failing = withRetries(async () => {
      attempts += 1;
      throw mistake;
    }, policy());
    await expect(failing).rejects.toBe(mistake);
    expect(attempts).toBe(1);
  });

  it('rejects with the reason of the signal that aborts the wait', async () => {
    const controller = new AbortController();
    const reason = new Error('stopping');
    const waits: number[] = [];
    const failing = withRetries(
      async () => {
        throw error('rate_limited', { retryAfterMs: 10_000 });
      },
      {
        ...policy(controller),
        onWait: (_, __, delayMs) => {
          waits.push(delayMs);
          setTimeout(() => controller.abort(reason), 1);
        },
      },
    );
    await expect(failing).rejects.toBe(reason);
    expect(waits).toEqual([10_000]);
  });

  it('does not wait for a retry once the signal has aborted', async () => {
    const controller = new AbortController();
    const reason = new Error('stopping');
    let waits = 0;
    const failing = withRetries(
      async () => {
        controller.abort(reason);
        throw error('network');
      },
      { ...policy(controller), onWait: () => (waits += 1) },
    );
    await expect(failing).rejects.toBe(reason);
    expect(waits).toBe(0);
  });

  it('returns the result of an attempt that succeeds after the signal has aborted', async () => {
    const controller = new AbortController();
    const result = await withRetries(async () => {
      controller.abort();
      return 'read';
    }, policy(controller));
    expect(result).toBe('read');
  });
});

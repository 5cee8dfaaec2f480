import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createLogger } from '../../../src/log/logger.ts';
import { createRequestFailureLog } from '../../../src/log/request-failures.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function setUp() {
  const lines: { event: string; level: string; failures: number; err: { message: string } }[] = [];
  const logger = createLogger({
    level: 'info',
    destination: { write: (line) => lines.push(JSON.parse(line)) },
    onFatalError: (error) => {
      throw error;
    },
  });
  const told = () =>
    lines.splice(0).map(({ event, level, failures, err }) => {
      expect({ event, level }).toEqual({ event: 'request.failed', level: 'error' });
      return [failures, err.message];
    });
  return { onBug: createRequestFailureLog(logger), told };
}

it('an unexpected request error is logged at once, and further ones within a minute in one line', () => {
  const { onBug, told } = setUp();
  onBug(new Error('first'));
  expect(told()).toEqual([[1, 'first']]);
  onBug(new Error('second'));
  onBug(new Error('third'));
  vi.advanceTimersByTime(59_999);
  expect(told()).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(told()).toEqual([[2, 'third']]);
  onBug(new Error('fourth'));
  expect(told()).toEqual([]);
  vi.advanceTimersByTime(60_000);
  expect(told()).toEqual([[1, 'fourth']]);
});

it('an unexpected request error is logged at once again after a minute without one', () => {
  const { onBug, told } = setUp();
  onBug(new Error('first'));
  vi.advanceTimersByTime(60_000);
  expect(told()).toEqual([[1, 'first']]);
  onBug(new Error('second'));
  expect(told()).toEqual([[1, 'second']]);
});

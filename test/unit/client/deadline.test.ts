import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { createDeadline } from '../../../src/client/sending/deadline.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setUp() {
  const onExpired = vi.fn<() => void>();
  const held = Promise.withResolvers<void>();
  return { onExpired, held, deadline: createDeadline(1000, systemClock, onExpired) };
}

it('a deadline counts again only after the last of several concurrent holds', async () => {
  const { deadline, held, onExpired } = setUp();
  const other = Promise.withResolvers<void>();
  const released = Promise.all([deadline.without(held.promise), deadline.without(other.promise)]);
  held.resolve();
  vi.advanceTimersByTime(100_000);
  other.resolve();
  await released;
  vi.advanceTimersByTime(999);
  expect(onExpired).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onExpired).toHaveBeenCalledOnce();
});

it('a cleared deadline does not restart when a hold ends', async () => {
  const { deadline, held, onExpired } = setUp();
  const released = deadline.without(held.promise);
  deadline.clear();
  held.resolve();
  await released;
  vi.advanceTimersByTime(100_000);
  expect(onExpired).not.toHaveBeenCalled();
});

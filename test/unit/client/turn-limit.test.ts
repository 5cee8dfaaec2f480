import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createTurnLimit } from '../../../src/client/listing/turn-limit.ts';

it('a turn limit delays bytes above its limit until the next turn of the event loop', async () => {
  const limit = createTurnLimit(100);
  expect(limit.take(60)).toBeUndefined();
  const first = limit.take(60);
  expect(first).toBeInstanceOf(Promise);
  // Every connection may deliver what it has read, and waits for the same turn.
  expect(limit.take(1)).toBe(first);
  await first;
  expect(limit.take(60)).toBeUndefined();
  await setImmediate();
  expect(limit.take(60)).toBeUndefined();
});

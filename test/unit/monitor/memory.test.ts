import { describe, expect, it } from 'vitest';
import { afterFailure, afterSuccess, NEVER_POLLED } from '../../../src/monitor/memory.ts';
import type { PollHealth } from '../../../src/monitor/ports/store.ts';

const INTERVAL = 30_000;

/** Returns the health after polls at these times; negative ones fail. */
function after(before: PollHealth, ...times: readonly number[]): PollHealth {
  return times.reduce((health, time) => {
    return time < 0
      ? afterFailure(health, -time, { reason: 'timeout', message: 'late', details: {} })
      : afterSuccess(health, time, INTERVAL);
  }, before);
}

describe('steadySince', () => {
  it('is the time of the first successful poll', () => {
    expect(after(NEVER_POLLED, -10_000).steadySince).toBeUndefined();
    expect(after(NEVER_POLLED, -10_000, 40_000, 70_000, 100_000).steadySince).toBe(40_000);
  });

  it('survives one failed or missing poll, even if the next one is late', () => {
    expect(after(NEVER_POLLED, 1000, -31_000, 61_000).steadySince).toBe(1000);
    expect(after(NEVER_POLLED, 1000, 75_000).steadySince).toBe(1000);
  });

  it('restarts after two failed or missing polls', () => {
    expect(after(NEVER_POLLED, 1000, -31_000, -61_000, 91_000).steadySince).toBe(91_000);
    expect(after(NEVER_POLLED, 1000, 91_000, 121_000).steadySince).toBe(91_000);
  });

  it('stays undefined for a project of an earlier version until there is a gap', () => {
    const before = { ...after(NEVER_POLLED, 1000), steadySince: undefined };
    expect(after(before, 31_000, -61_000, 91_000).steadySince).toBeUndefined();
    expect(after(before, 31_000, 121_000).steadySince).toBe(121_000);
  });

  it('restarts when the clock is set back', () => {
    expect(after(NEVER_POLLED, 1_000_000, 5000, 35_000).steadySince).toBe(5000);
  });
});

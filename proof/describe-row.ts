import { describe, expect, it } from 'vitest';
import { noticeOf } from './bug.ts';
import type { Row, RowOptions } from './row.ts';

const SHORT: RowOptions = { short: true, seed: 1, print: () => {} };
/** Of a machine that has much else to do. */
const TIMEOUT_MS = 300_000;

/**
 * The short form of a row as a test, and a test of that test. One that runs alone holds before mistakes are planted, as
 * what it bounds is time.
 */
export function describeRow(row: Row, { alone = false } = {}): void {
  describe.concurrent(`proof of ${row.name}`, () => {
    it('holds', { timeout: TIMEOUT_MS, concurrent: !alone }, async () => {
      const figures = await row.run(SHORT);
      expect(figures.flat().filter((text) => text.startsWith('FAILED'))).toEqual([]);
    });

    const bugs = [row.bug ?? []].flat();
    it.each(bugs)('notices: $what', { timeout: TIMEOUT_MS }, async (bug) => {
      const noticing = noticeOf(bug, (options) => row.run({ ...SHORT, ...options }));
      await expect(noticing).resolves.toEqual(expect.any(String));
    });
  });
}

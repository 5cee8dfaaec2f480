import { expect, it } from 'vitest';
import type { Row } from './row.ts';

/** Of a machine that has much else to do. */
const TIMEOUT_MS = 600_000;

/** The short form of a row as a test. `npm run proof` also runs it on sources with each of the row's mistakes. */
export function describeRow(row: Row): void {
  it(`proof of ${row.name} holds`, { timeout: TIMEOUT_MS }, async () => {
    const figures = await row.run({ short: true, seed: 1, print: () => {} });
    expect(figures.flat().filter((text) => text.startsWith('FAILED'))).toEqual([]);
  });
}

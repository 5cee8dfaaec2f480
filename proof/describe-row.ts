import { expect, it } from 'vitest';
import { type Row, Unavailable } from './row.ts';

/** Timeout on a busy machine. */
const TIMEOUT_MS = 600_000;

/** Tests the short form of a row. `npm run proof` also runs it on sources with each of the row's mistakes. */
export function describeRow(row: Row): void {
  it(`proof of ${row.name} holds`, { timeout: TIMEOUT_MS }, async ({ skip }) => {
    const figures = await row
      .run({ short: true, seed: 1, print: () => {} })
      .catch((error: unknown) => {
        if (!(error instanceof Unavailable)) throw error;
        console.warn(`NOT PROVED HERE: ${error.message}`);
        return skip(error.message);
      });
    expect(figures).not.toEqual([]);
  });
}

import { expect, it } from 'vitest';
import { partialParsing } from '../../proof/partial-parsing.ts';
import { web } from '../../proof/web.ts';

// `npm run proof` runs their long forms, and runs them on sources with each of their mistakes.
it.each([web, partialParsing])(
  'the short form of the proof $name holds',
  { timeout: 600_000 },
  async (row) => {
    expect(await row.run({ short: true, seed: 1, print: () => {} })).not.toEqual([]);
  },
);

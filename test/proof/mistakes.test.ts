import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SOURCE } from '../../proof/row.ts';
import { ROWS } from '../../proof/rows.ts';

const MISTAKES = ROWS.flatMap(({ name, bug }) =>
  [bug ?? []].flat().map((each) => ({ name, ...each })),
);

// `npm run proof` checks whether they are detected.
describe('the deliberate mistakes of the proofs', () => {
  it.each(MISTAKES)(
    '$name: $what: each text to replace occurs exactly once in the source file',
    ({ file, replace }) => {
      let text = readFileSync(join(SOURCE, file), 'utf8');
      for (const [before, after] of replace) {
        expect(text.split(before)).toHaveLength(2);
        text = text.replace(before, () => after);
      }
    },
  );
});

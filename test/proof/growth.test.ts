import { describe, expect, it } from 'vitest';
import { describeRow } from '../../proof/describe-row.ts';
import { growth } from '../../proof/growth.ts';
import { EXCEPTIONS, functionsOfText } from '../../proof/growth/exported.ts';
import { textFunctions } from '../../proof/growth/text-functions.ts';

describeRow(growth);

describe('the table of functions', () => {
  it('has every exported function that may be given text of others, or says why not', async () => {
    const tested = textFunctions('').map(({ name }) => name.replace(/,.*/, ''));
    const excepted = Object.values(EXCEPTIONS).flat();
    const exported = await functionsOfText();
    const known = new Set([...tested, ...excepted]);
    expect(exported.filter((name) => !known.has(name))).toEqual([]);
    expect(excepted.filter((name) => !exported.includes(name))).toEqual([]);
  });
});

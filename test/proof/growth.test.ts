import { describe, expect, it } from 'vitest';
import { describeRow } from '../../proof/describe-row.ts';
import { growth } from '../../proof/growth.ts';
import { EXCEPTIONS, functionsOfText } from '../../proof/growth/exported.ts';
import { textFunctions } from '../../proof/growth/text-functions.ts';

describeRow(growth);

describe('the table of text functions', () => {
  it('covers or explicitly excepts every exported function that takes untrusted text', async () => {
    const tested = textFunctions('').map(({ name }) => name.replace(/,.*/, ''));
    const excepted = Object.values(EXCEPTIONS).flat();
    const exported = await functionsOfText();
    const known = new Set([...tested, ...excepted]);
    expect(exported.filter((name) => !known.has(name))).toEqual([]);
    expect(excepted.filter((name) => !exported.includes(name))).toEqual([]);
  });
});

import assert from 'node:assert';
import { describe, expect, it } from 'vitest';
import { toOutcome } from '../../../src/cli/main.ts';

function thrownBy(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return error;
  }
}

describe('the outcome of a command', () => {
  it.each([
    [new TypeError('x is undefined'), 'TypeError: x is undefined'],
    [thrownBy(() => Buffer.from(7 as never)), 'The first argument must be of type string'],
    [thrownBy(() => Buffer.alloc(-1)), 'RangeError'],
    [thrownBy(() => assert.equal(1, 2)), 'AssertionError'],
    [
      Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' }),
      'after end',
    ],
    ['thrown text', 'thrown text'],
    [undefined, 'undefined'],
    [null, 'null'],
  ])('is exit code 1 and one line for the unexpected error %s', (error, text) => {
    const { exitCode, lines } = toOutcome(error);
    expect(exitCode).toBe(1);
    expect(lines).toEqual([expect.stringMatching(/^error: unexpected, please report/)]);
    expect(lines[0]).toContain(text);
  });
});

import { PassThrough, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createOutput, ReaderGoneError } from '../../../src/cli/output.ts';
import { formatDuration, parseDuration } from '../../../src/domain/options.ts';

const failing = (code: string) =>
  new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error(code), { code })),
  });

describe('output', () => {
  it.each([
    [undefined, undefined],
    [0, undefined],
    [80, 80],
  ])('to a stream of %j columns has the width %j', (columns, width) => {
    expect(createOutput(Object.assign(new PassThrough(), { columns }), false).width).toBe(width);
  });

  it('rejects with ReaderGoneError if the reader has closed the pipe', async () => {
    await expect(createOutput(failing('EPIPE'), false).write('x')).rejects.toThrow(ReaderGoneError);
  });

  it('rejects with the original error if the write fails for another reason', async () => {
    await expect(createOutput(failing('ENOSPC'), false).write('x')).rejects.toThrow('ENOSPC');
  });
});

it.each([
  [0, '0s', '0s'],
  [500, '500ms', '500ms'],
  [5_400_000, '1h30m', '1h30m'],
  [3_600_001, '1h1ms', '1h'],
  [93_784_005, '1d2h3m4s5ms', '1d2h'],
  [86_460_000, '1d1m', '1d'],
  [1_246_783.4, '20m46s783ms', '20m46s'],
])('%d ms are formatted as %s, or as %s with two units', (ms, whole, short) => {
  expect([formatDuration(ms), formatDuration(ms, 2)]).toEqual([whole, short]);
  expect(parseDuration(whole)).toBe(Math.floor(ms));
});

import { PassThrough, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { createOutput, ReaderGoneError } from '../../../src/cli/output/output.ts';

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

  it('writes 20,000 lines in order in fewer than 10 chunks', async () => {
    const stream = new PassThrough();
    const received = text(stream);
    let pieces = 0;
    stream.on('data', () => (pieces += 1));
    const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index}`);
    await createOutput(stream, false).writeLines(lines);
    stream.end();
    expect(await received).toBe(lines.map((line) => `${line}\n`).join(''));
    expect(pieces).toBeLessThan(10);
  });

  it('stops generating lines while the reader is blocked', async () => {
    let made = 0;
    function* lines() {
      for (; made < 100; made += 1) yield 'x'.repeat(1000);
    }
    const held: (() => void)[] = [];
    let free = false;
    const slow = new Writable({
      write: (_chunk, _encoding, done) => {
        if (free) done();
        else held.push(done);
      },
    });
    const writing = createOutput(slow, false).writeLines(lines());
    await new Promise(setImmediate);
    expect(made).toBeLessThan(70);
    free = true;
    for (const take of held) take();
    await writing;
    expect(made).toBe(100);
  });

  it('rejects with ReaderGoneError if the reader has closed the pipe', async () => {
    await expect(createOutput(failing('EPIPE'), false).write('x')).rejects.toThrow(ReaderGoneError);
  });

  it('rejects with the original error if the write fails for another reason', async () => {
    await expect(createOutput(failing('ENOSPC'), false).write('x')).rejects.toThrow('ENOSPC');
  });
});

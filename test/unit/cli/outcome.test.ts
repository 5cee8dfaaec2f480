import assert from 'node:assert';
import { CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { UsageError } from '../../../src/cli/command.ts';
import { toOutcome } from '../../../src/cli/main.ts';
import { ReaderGoneError } from '../../../src/cli/output.ts';
import { ConfigError } from '../../../src/config/config.ts';
import { ApiError, StoreError } from '../../../src/monitor/errors.ts';

const badFile = new ConfigError('invalid', [
  { file: '/a.yaml', line: 1, column: 2, message: 'one' },
  { file: 'EVALWATCH_LOG_LEVEL', line: 0, column: 0, message: 'two' },
]);
const addressInUse = Object.assign(new Error('listen EADDRINUSE'), { code: 'EADDRINUSE' });

function thrownBy(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return error;
  }
}

describe('the outcome of a command', () => {
  it.each([
    ['help that was asked for', new CommanderError(0, 'commander.help', ''), 0, []],
    ['bad usage that commander has told of', new CommanderError(1, 'commander.x', 'x'), 2, []],
    ['a reader that has gone', new ReaderGoneError(), 0, []],
    ['bad usage', new UsageError('unknown project "x"'), 2, ['error: unknown project "x"']],
    ['a bad configuration', badFile, 2, ['/a.yaml:1:2: one', 'EVALWATCH_LOG_LEVEL: two']],
    ['trouble with the store', new StoreError('busy', 'in use'), 1, ['error: in use']],
    ['trouble with the service', new ApiError('auth', 'no key'), 1, ['error: no key']],
    ['trouble with the system', addressInUse, 1, ['error: listen EADDRINUSE']],
  ])('has the expected exit code and error lines for %s', (_, error, exitCode, lines) => {
    expect(toOutcome(error)).toEqual({ exitCode, lines });
  });

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

import { CommanderError } from 'commander';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { readOptions } from '../../../proof/options.ts';
import { ROWS } from '../../../proof/rows.ts';

const named = (...names: readonly string[]) => ROWS.filter(({ name }) => names.includes(name));

describe('the command line of the proofs', () => {
  beforeEach(() => {
    // Silences Commander, which prints help and errors.
    const streams = [process.stdout, process.stderr].map((stream) =>
      vi.spyOn(stream, 'write').mockReturnValue(true),
    );
    return () => streams.forEach((stream) => stream.mockRestore());
  });

  it.each([
    ['', { kind: 'rows', rows: ROWS, short: false, seed: undefined }],
    ['protocol --short', { kind: 'rows', rows: named('protocol'), short: true }],
    [
      'upgrade power-loss --seed 0',
      { kind: 'rows', rows: named('upgrade', 'power-loss'), seed: 0 },
    ],
    ['simulation --seed 7', { kind: 'rows', rows: named('simulation'), seed: 7 }],
    [
      'simulation --part workers --days 100 --seed 1',
      { kind: 'days', parts: ['workers'], days: 100, seed: 1 },
    ],
    ['simulation --days 0.5', { kind: 'days', parts: ['daemon', 'workers'], days: 0.5 }],
    ['limits --durations f', { kind: 'durations', file: 'f' }],
    ['limits --durations ./-f', { kind: 'durations', file: './-f' }],
    ['causes --messages f', { kind: 'messages', file: 'f', out: undefined }],
    ['causes --messages f --out g', { kind: 'messages', file: 'f', out: 'g' }],
  ])('accepts: %s', (line, expected) => {
    expect(readOptions(line.split(' ').filter(Boolean))).toMatchObject(expected);
  });

  it('exits with 0 after --help', () => {
    expect(() => readOptions(['--help'])).toThrow(expect.objectContaining({ exitCode: 0 }));
  });

  it.each([
    ['nothing', "'nothing' is invalid for argument 'row'. Allowed choices are power-loss, "],
    ['--sed 7', "unknown option '--sed'\n(Did you mean --seed?)"],
    ['--seed', "option '--seed <n>' argument missing"],
    ['--seed x', "'x' is invalid. It must be a whole number, 0 or more."],
    ['simulation --part worker --days 1', "'worker' is invalid. Allowed choices are daemon, "],
    ['simulation --part daemon --days 0', "'0' is invalid. It must be a number above 0."],
    ['simulation --part daemon --days 1 --short', "cannot be used with option '--short'"],
    ['simulation --part daemon', '--part needs --days'],
    ['simulation kill --part daemon --days 1', '--days works only with the row simulation: npm'],
    ['--part daemon --days 1', '--days works only with the row simulation: npm'],
    ['kill --durations f', '--durations works only with the row limits: npm run proof -- limits'],
    ['limits --durations f --seed 1', "cannot be used with option '--seed <n>'"],
    ['causes --out f', '--out needs --messages'],
    ['web limits', 'limits needs --durations'],
    ['limits --durations --seed 1', "argument '--seed' is invalid. It must be a file"],
    ['causes --messages --out g', "argument '--out' is invalid. It must be a file"],
    ['causes --messages f --out --seed', "argument '--seed' is invalid. It must be a file"],
  ])('rejects with an explanation: %s', (line, expected) => {
    const read = () => readOptions(line.split(' '));
    expect(read).toThrow(CommanderError);
    expect(read).toThrow(expected);
  });
});

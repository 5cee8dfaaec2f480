import { CommanderError } from 'commander';
import { describe, expect, it, vi } from 'vitest';
import { readOptions } from '../../../proof/options.ts';
import { ROWS } from '../../../proof/rows.ts';

/** Reads a command line that is wrong. Returns the error that is printed. */
function errorOf(line: string): string {
  const printed: string[] = [];
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    printed.push(String(text));
    return true;
  });
  try {
    readOptions(line.split(' '));
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return printed[0] ?? '';
  } finally {
    write.mockRestore();
  }
  return '';
}

describe('what a proof is asked for', () => {
  it('is every row if none is named', () => {
    expect(readOptions([]).rows).toEqual(ROWS);
  });

  it('is the named rows, few rounds and a seed', () => {
    const { rows, short, seed } = readOptions(['kill', 'simulation', '--short', '--seed', '7']);
    expect(rows.map(({ name }) => name)).toEqual(['kill', 'simulation']);
    expect({ short, seed }).toEqual({ short: true, seed: 7 });
  });

  it('is days of one part, by default of twenty projects', () => {
    const line = ['simulation', '--part', 'workers', '--days', '0.5'];
    expect(readOptions(line)).toMatchObject({ part: 'workers', days: 0.5, projects: 20 });
    expect(readOptions([...line, '--projects', '3'])).toMatchObject({ projects: 3 });
  });

  it.each([
    ['nothing', "'nothing' is invalid for argument 'row'. Allowed choices are power-loss, "],
    ['--sed 7', "unknown option '--sed'\n(Did you mean --seed?)"],
    ['--seed', "option '--seed <number>' argument missing"],
    ['--seed x', "argument 'x' is invalid. It must be a whole number."],
    ['simulation --part worker --days 1', "argument 'worker' is invalid. Allowed choices are"],
    ['simulation --part daemon --days 0', "argument '0' is invalid. It must be a number above 0."],
    ['simulation --part daemon --days 1 --projects 21', 'It must be at most 20.'],
    ['simulation --part daemon --repeat 1.5', "argument '1.5' is invalid. It must be a whole"],
    ['simulation --part daemon --days 1 --repeat 1', '--days and --repeat exclude each other'],
    ['simulation --days 1', '--days needs --part'],
    ['simulation --part daemon', '--part needs --days or --repeat or --searches'],
    ['simulation kill --part daemon --days 1', '--days needs the row simulation, and no other'],
    ['--part daemon --days 1', '--days needs the row simulation, and no other'],
    ['simulation --part daemon --days 1 --short', '--short is not for --days'],
    ['simulation --part daemon --repeat 1 --projects 3', '--projects needs --days'],
    ['simulation --part daemon --days 1 --mistake x', '--mistake needs --searches'],
    ['simulation --part server --searches 1', '--searches is not for --part server'],
    ['kill --durations f', '--durations needs the row limits, and no other'],
    ['limits --durations f --seed 1', '--seed is not for --durations'],
    ['causes --out f', '--out needs --messages'],
  ])('%s says what is wrong', (line, expected) => {
    expect(errorOf(line)).toContain(expected);
  });
});

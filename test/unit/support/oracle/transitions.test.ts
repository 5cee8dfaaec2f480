import { describe, expect, it } from 'vitest';
import type { TransitionRow } from '../../../support/oracle/observation.ts';
import { edited, transitions, verdict, without } from './doctor.ts';
import { move, RIGHT, time } from './history.ts';

type Rows = readonly TransitionRow[];
type Move = readonly [id: string, from: string, to: string];

function plus(second: number, moved: Move): (rows: Rows) => Rows {
  return (rows) => [move(9, second, moved), ...rows];
}

/** Swaps the numbers of two transitions. */
function swapped(one: number, other: number): (rows: Rows) => Rows {
  const numbers = new Map([
    [one, other],
    [other, one],
  ]);
  return (rows) =>
    rows.map((row) => ({
      ...row,
      transition_id: numbers.get(row.transition_id) ?? row.transition_id,
    }));
}

describe('the oracle on transitions', () => {
  it('reports nothing if they are right', () => {
    expect(verdict()).toBe('');
  });

  it.each<readonly [what: string, change: (rows: Rows) => Rows, difference: string]>([
    ['a lost one at the end', (rows) => without(rows, 7), 'prompts of "p": listing 7 '],
    ['a lost one in between', (rows) => without(rows, 1), 'prompts of "p": listing 2 '],
    ["a dataset's lost one", (rows) => without(rows, 3), 'datasets of "p": listing 12 '],
    ['a lost one to FAILED', (rows) => without(rows, 8), 'prompts of "p": listing 7 '],
    ['a doubled one', plus(7, ['a', 'RUNNING', 'COMPLETED']), 'prompts of "p": listing 7 '],
    ['an invented one', plus(7, ['d', 'COMPLETED', 'RUNNING']), 'listing 7 '],
    ['one of an invented prompt', plus(7, ['e', 'NEW', 'RUNNING']), 'listing 7 '],
    ['one of the baseline', plus(1, ['d', 'NEW', 'COMPLETED']), 'listing 1 '],
    ['one before any listing', plus(0, ['d', 'NEW', 'COMPLETED']), 'before any listing'],
    ['one of a prompt that is missing', plus(3, ['b', 'FAILED', 'RUNNING']), 'listing 3 '],
    [
      'one that comes a listing late',
      (rows) => edited(rows, { time: time(3, 10) }, 1),
      'listing 2 ',
    ],
    ['one from the wrong status', (rows) => edited(rows, { from: 'PENDING' }, 7), 'no chain'],
    ['one to the wrong status', (rows) => edited(rows, { to: 'FAILED' }, 7), 'listing 7 '],
    ['one of the wrong prompt', (rows) => edited(rows, { prompt_id: 'e' }, 6), 'listing 5 '],
    [
      'one of another project',
      (rows) => [...edited(rows, { project: 'q' }, 7), ...rows],
      'of nothing watched',
    ],
    ['two in the wrong order', swapped(1, 4), 'no chain'],
    ['a number that comes twice', (rows) => edited(rows, { transition_id: 1 }, 7), 'twice: '],
    [
      'a listing in two commits',
      (rows) => edited(rows, { time: time(7, 11) }, 8),
      'prompts of "p": listing 7 ',
    ],
  ])('notices %s', (_, change, difference) => {
    expect(verdict(transitions(change))).toContain(difference);
  });

  it('expects none from a listing whose items have no status', () => {
    const journal = RIGHT.journal.map((entry) => {
      const useless = entry.items.map(() => ['a', null] as const);
      return { ...entry, seq: entry.seq + 10, producedAt: entry.producedAt + 7000, items: useless };
    });
    const prompts = journal.filter(({ kind }) => kind === 'prompt');
    expect(verdict({ journal: [...RIGHT.journal, ...prompts] })).toBe('');
  });
});

import { describe, expect, it } from 'vitest';
import { compare } from '../../../support/oracle.ts';
import { lines, verdict } from './doctor.ts';
import { polled, RIGHT } from './history.ts';

const { differences, end: before } = compare(RIGHT);
const last = RIGHT.journal.at(-1);
const later = { producedAt: 8000, finishedAt: 8005, seq: 8 };

describe('the oracle after an earlier comparison', () => {
  it('needs no journal of the listings already compared', () => {
    expect(differences).toEqual([]);
    expect(before.transitionId).toBe(8);
    expect(verdict({ journal: [], before })).toBe('');
    expect(verdict({ journal: [] })).toContain('before any listing');
  });

  it('continues from the state at its end', () => {
    const journal = last === undefined ? [] : [{ ...last, ...later }];
    expect(verdict({ journal, before })).toBe('');
    const repeated = journal.map((entry) => ({ ...entry, items: [], unchanged: true }));
    expect(verdict({ journal: repeated, before })).toBe('');
  });

  it('notices a transition that is lost afterwards', () => {
    const journal =
      last === undefined ? [] : [{ ...last, ...later, items: [['a', 'FAILED']] as const }];
    const told = lines((earlier) => [...earlier, polled(8)]);
    expect(verdict(told, { journal, before })).toContain('means [["a","COMPLETED","FAILED"]]');
  });
});

import { describe, expect, it } from 'vitest';
import type { MonitorEvent } from '../../../../src/monitor/events.ts';
import { StoreError } from '../../../../src/monitor/errors.ts';
import { createProjectChanges } from '../../../../src/store/postgres/configure.ts';
import type { Database, Statement } from '../../../../src/store/postgres/database.ts';
import { CONFIRM, NEXT_EPOCH } from '../../../../src/store/postgres/sql/projects.ts';

/** More than the number of rounds that others may disturb. */
const LOST_ANSWERS = 8;

describe('a change of the configured projects', () => {
  it('is retried however often its response is lost', async () => {
    const database = setUp({ lostChanges: LOST_ANSWERS });

    await database.changes.configure(['p'], 1);

    expect(database.confirmed()).toBe(database.newest());
    expect(database.countOf('store.commit_failed')).toBe(LOST_ANSWERS);
    expect(database.countOf('store.committed')).toBe(1);
  });

  it('keeps requesting a new number once the change may have been applied', async () => {
    const database = setUp({ lostChanges: 1, lostNumbers: [2, 3] });

    await database.changes.configure(['p'], 1);

    expect(database.confirmed()).toBe(database.newest());
    expect(database.countOf('store.commit_failed')).toBe(3);
  });

  it('fails at once and changes nothing if its first number cannot be obtained', async () => {
    const database = setUp({ lostNumbers: [1] });

    await expect(database.changes.configure(['p'], 1)).rejects.toThrow(/^lost$/);

    expect(database.newest()).toBe(0);
    expect(database.countOf('store.commit_failed')).toBe(1);
  });

  it('fails at once if another change came first and the next number cannot be obtained', async () => {
    const database = setUp({ lostNumbers: [2], preceding: 1 });

    await expect(database.changes.configure(['p'], 1)).rejects.toThrow(/^lost$/);

    expect(database.countOf('store.commit_failed')).toBe(1);
    expect(database.countOf('store.committed')).toBe(0);
  });

  it('fails if other changes come first in every round, and reports whether it may have been made', async () => {
    const others = setUp({ preceding: Infinity });
    await expect(others.changes.configure(['p'], 1)).rejects.toThrow(/row: try again$/);

    const lost = setUp({ lostChanges: 1, preceding: Infinity });
    await expect(lost.changes.configure(['p'], 1)).rejects.toThrow(
      /row: .* may have changed already/,
    );
  });

  it('is not retried when it restores lost projects', async () => {
    const database = setUp({ lostChanges: 1 });

    await expect(database.changes.restore(['p'], 1, 0)).rejects.toThrow(/^lost$/);
    await expect(database.changes.restore(['p'], 1, 0)).resolves.toBe(false);

    expect(database.countOf('store.committed')).toBe(0);
  });

  it('is repeated with a new number while the confirmation finds other projects', async () => {
    const database = setUp({ differing: 2 });

    await database.changes.configure(['p'], 1);

    expect(database.countOf('store.committed')).toBe(3);
    expect(database.confirmed()).toBe(database.newest());
  });
});

interface Trouble {
  /** Number of changes that are made but lose their answers. */
  readonly lostChanges?: number;
  /** Requests for a number that lose their answers, counted from 1. */
  readonly lostNumbers?: readonly number[];
  /** Number of other changes between a number and its change, after the lost ones. */
  readonly preceding?: number;
  /** Number of confirmations that find other projects. */
  readonly differing?: number;
}

/** Sets up the changes on a database that executes every statement. */
function setUp({ lostChanges = 0, lostNumbers = [], preceding = 0, differing = 0 }: Trouble) {
  const events: MonitorEvent[] = [];
  const left = { lostChanges, preceding, differing };
  let sequence = 0;
  let numbers = 0;
  let newest = 0;
  let confirmed: unknown;
  const lost = { error: new StoreError('io', 'lost'), unknown: true };

  function change(number: number, expected: unknown) {
    sequence += 1;
    if (left.preceding > 0 && left.lostChanges === 0) {
      left.preceding -= 1;
      newest = sequence;
    }
    if (newest >= number || (expected ?? newest) !== newest) return { rows: [{ epoch: null }] };
    newest = sequence;
    if (left.lostChanges === 0) return { rows: [{ epoch: newest }] };
    left.lostChanges -= 1;
    return lost;
  }

  function confirm(number: unknown) {
    confirmed = number;
    left.differing -= 1;
    return { rows: [{ differs: left.differing >= 0 }] };
  }

  function draw() {
    sequence += 1;
    numbers += 1;
    return lostNumbers.includes(numbers) ? lost : { rows: [{ epoch: sequence }] };
  }

  const attempt = async ({ name }: Statement, values: readonly unknown[]) => {
    if (name === NEXT_EPOCH.name) return draw();
    return name === CONFIRM.name ? confirm(values[2]) : change(Number(values[2]), values[3]);
  };

  return {
    changes: createProjectChanges({
      database: { attempt: attempt as Database['attempt'] },
      clock: { monotonic: () => 0, sleep: async () => {} },
      emit: (event) => events.push(event),
      signal: new AbortController().signal,
    }),
    newest: () => newest,
    confirmed: () => confirmed,
    countOf: (type: MonitorEvent['type']) => events.filter((event) => event.type === type).length,
  };
}

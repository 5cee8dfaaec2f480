import { describe, expect, it } from 'vitest';
import type { MonitorEvent } from '../../../../src/monitor/events.ts';
import { StoreError } from '../../../../src/monitor/errors.ts';
import { createProjectChanges } from '../../../../src/store/postgres/configure.ts';
import type { Database, Statement } from '../../../../src/store/postgres/database.ts';
import { CONFIGURE, CONFIRM, NEXT_EPOCH } from '../../../../src/store/postgres/sql/projects.ts';

/** More than the rounds that others may disturb. */
const LOST_ANSWERS = 8;

describe('a change of the projects', () => {
  it('is made however often its answer is lost', async () => {
    let losses = 0;
    const database = startDatabase(({ name }, isMade) => {
      if (name !== CONFIGURE.name || !isMade || losses === LOST_ANSWERS) return false;
      losses += 1;
      return true;
    });

    await database.changes.configure(['p'], 1);

    expect(losses).toBe(LOST_ANSWERS);
    expect(database.confirmed()).toBe(database.newest());
    expect(database.told('store.commit_failed')).toBe(LOST_ANSWERS);
    expect(database.told('store.committed')).toBe(1);
  });

  it('fails at once if the answer to its number is lost: nothing has changed', async () => {
    let isFirst = true;
    const database = startDatabase(({ name }) => {
      const isLost = isFirst && name === NEXT_EPOCH.name;
      isFirst = false;
      return isLost;
    });

    await expect(database.changes.configure(['p'], 1)).rejects.toThrow(/^lost$/);

    expect(database.newest()).toBe(0);
    expect(database.told('store.commit_failed')).toBe(1);
  });

  it('waits for a number once it may have been made', async () => {
    const lost = [CONFIGURE.name, NEXT_EPOCH.name, NEXT_EPOCH.name];
    const database = startDatabase(({ name }) => {
      if (name !== lost[0]) return false;
      lost.shift();
      return true;
    });

    await database.changes.configure(['p'], 1);

    expect(lost).toEqual([]);
    expect(database.confirmed()).toBe(database.newest());
  });
});

/** A database that makes every statement, and whose answers are lost if `isLost` says so. */
function startDatabase(isLost: (statement: Statement, isMade: boolean) => boolean) {
  const events: MonitorEvent[] = [];
  let sequence = 0;
  let newest = 0;
  let confirmed: unknown;
  /** The statements by their effect on the number of the newest change. */
  const answer = ({ name }: Statement, values: readonly unknown[]) => {
    if (name === CONFIRM.name) {
      confirmed = values[2];
      return { epoch: newest, differs: false };
    }
    if (name === CONFIGURE.name) {
      if (newest >= Number(values[2])) return { epoch: null };
      newest = sequence += 1;
      return { epoch: newest };
    }
    return { epoch: (sequence += 1) };
  };
  const attempt = async (statement: Statement, values: readonly unknown[]) => {
    const row = answer(statement, values);
    if (!isLost(statement, row.epoch !== null)) return { rows: [row] };
    return { error: new StoreError('io', 'lost'), unknown: true };
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
    told: (type: MonitorEvent['type']) => events.filter((event) => event.type === type).length,
  };
}

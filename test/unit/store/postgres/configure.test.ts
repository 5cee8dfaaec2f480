import { expect, it } from 'vitest';
import type { MonitorEvent } from '../../../../src/monitor/events.ts';
import { StoreError } from '../../../../src/monitor/errors.ts';
import { createProjectChanges } from '../../../../src/store/postgres/configure.ts';
import type { Database, Statement } from '../../../../src/store/postgres/database.ts';
import { CONFIGURE, CONFIRM } from '../../../../src/store/postgres/sql/projects.ts';

/** More than the rounds that others may disturb. */
const LOST_ANSWERS = 8;

it('a change of the projects is made however often its answer is lost', async () => {
  const events: MonitorEvent[] = [];
  let sequence = 0;
  let newest = 0;
  let losses = 0;
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
    const isMade = statement.name === CONFIGURE.name && row.epoch !== null;
    if (!isMade || losses === LOST_ANSWERS) return { rows: [row] };
    losses += 1;
    return { error: new StoreError('io', 'lost'), unknown: true };
  };
  const changes = createProjectChanges({
    database: { attempt: attempt as Database['attempt'] },
    clock: { monotonic: () => 0, sleep: async () => {} },
    emit: (event) => events.push(event),
    signal: new AbortController().signal,
  });

  await changes.configure(['p'], 1);

  expect(losses).toBe(LOST_ANSWERS);
  expect(confirmed).toBe(newest);
  expect(events.filter(({ type }) => type === 'store.commit_failed')).toHaveLength(LOST_ANSWERS);
  expect(events.filter(({ type }) => type === 'store.committed')).toHaveLength(1);
});

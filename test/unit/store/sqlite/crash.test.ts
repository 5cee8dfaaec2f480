import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { checkStore } from '../../../../src/store/sqlite/check.ts';
import { openStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { startChild } from './child.ts';

it('a daemon that is killed during a commit loses no acknowledged transition', async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, 'store.db');
  const acknowledged: string[] = [];
  for (const killAfter of [1, 7, 40, 150]) {
    await using child = startChild('commit-forever.ts', path);
    for (let count = 0; count < killAfter; count += 1) {
      const { value, done } = await child.lines.next();
      if (done !== true) acknowledged.push(value);
    }
    await child.kill();
    for await (const line of child.lines) acknowledged.push(line);
  }
  expect(acknowledged.length).toBeGreaterThanOrEqual(198);

  const store = await openStore({ path, clock: systemClock, emit: () => {} });
  const rows = (await store.transitions({})).toReversed();
  const lines = rows.map(({ transitionId, from, to }) => `${transitionId} ${from} ${to}`);
  expect(new Set(lines).isSupersetOf(new Set(acknowledged))).toBe(true);

  // Whole transactions: the chain, the totals and the failures agree with each other.
  expect(rows.slice(1).map(({ from }) => from)).toEqual(rows.slice(0, -1).map(({ to }) => to));
  const [project] = (await store.snapshot()).projects;
  const totals = project?.listings.get('prompt')?.transitions ?? [];
  expect(totals.reduce((sum, [, , count]) => sum + count, 0)).toBe(rows.length);
  const failed = rows.filter(({ to }) => to === 'FAILED').map((row) => row.transitionId);
  const pending = await store.pendingFailures({ limitPerProject: Number.MAX_SAFE_INTEGER });
  expect(pending.map(({ transitionId }) => transitionId)).toEqual(failed);
  const { listings } = await store.loadKnown('p', ['prompt']);
  expect(listings.get('prompt')?.records.get('x')?.status).toBe(rows.at(-1)?.to);
  await store.close();

  const checked = await checkStore(path);
  expect(checked.flatMap(({ findings }) => findings)).toEqual([]);
}, 60_000);

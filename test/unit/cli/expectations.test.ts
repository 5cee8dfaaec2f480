import { expect, it } from 'vitest';
import { createExpectationsReader } from '../../../src/cli/expectations.ts';
import type { PromptStatus } from '../../../src/domain/status.ts';
import type { ProjectState, StatusRow } from '../../../src/monitor/ports/store.ts';
import { BY_DEFAULT } from '../../support/expected.ts';
import { fakeClock } from '../../support/monitor.ts';

const row = (project: string, status: PromptStatus): StatusRow => {
  const none = { promptName: undefined, statusRaw: undefined };
  return { project, promptId: 'x', status, since: 0, missing: 0, ...none };
};

/** Creates a reader over an empty store that records the projects of each read. */
function setUp() {
  const clock = fakeClock();
  const asked: string[] = [];
  const store = {
    durations: async (states: readonly ProjectState[]) => {
      asked.push([...new Set(states.map(({ project }) => project))].join(' '));
      return states.map((state) => {
        return { ...state, counts: [] };
      });
    },
  };
  const projects = ['busy', 'done', 'later'].map((id) => {
    const key = { file: 'key' } as never;
    const schedule = { schedule: '* * * * *', timezone: 'UTC' };
    return { ...BY_DEFAULT, ...schedule, id, key, datasets: false };
  });
  return { clock, asked, read: createExpectationsReader(store, projects, clock) };
}

it('the expectations reader reads nothing for finished prompts and unconfigured projects', async () => {
  const { read, asked } = setUp();
  const of = await read([row('done', 'COMPLETED'), row('removed', 'RUNNING')]);
  expect([of('done'), of('removed'), asked]).toEqual([undefined, undefined, []]);
});

it('the expectations reader reads projects with unfinished prompts every 5 minutes, and a new one at once', async () => {
  const { read, asked, clock } = setUp();
  const rows = [row('busy', 'RUNNING'), row('busy', 'PENDING'), row('done', 'FAILED')];
  const of = await read(rows);
  expect(of('busy')).toMatchObject({
    PENDING: { source: 'default' },
    RUNNING: { source: 'default' },
  });
  expect(of('done')).toBeUndefined();
  clock.advance(299_000);
  await read(rows);
  expect(asked).toEqual(['busy']);
  clock.advance(1000);
  await read(rows);
  expect(asked).toEqual(['busy', 'busy']);
  await read([row('later', 'PENDING')]);
  expect(asked).toEqual(['busy', 'busy', 'later']);
});

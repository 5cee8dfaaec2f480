/** Runs scenarios, JSON on stdin, through the scheduler of a copy of src/ in virtual time. Prints each outcome on a line. */
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import type * as ClockRoom from '../../src/app/clock.ts';
import type * as SchedulerRoom from '../../src/schedule/scheduler.ts';
import type { Outcome, Scenario } from './scenario.ts';
import { installVirtualTime } from './virtual-time.ts';

const scenarios = (await json(process.stdin)) as readonly Scenario[];
const time = installVirtualTime();
const source = process.argv[2] ?? '';
const { createScheduler } = (await import(
  join(source, 'schedule/scheduler.ts')
)) as typeof SchedulerRoom;
const { systemClock } = (await import(join(source, 'app/clock.ts'))) as typeof ClockRoom;

for (const { start, schedules, steps } of scenarios) {
  time.set(start);
  const starts: Outcome['starts'][number][] = [];
  const missed: Record<string, number> = {};
  const marks: number[] = [];
  let overlapped = 0;
  const scheduler = createScheduler({
    clock: systemClock,
    run: async (id, { dueAt, nextAt }) => {
      starts.push({ id, at: time.monotonic(), dueAt, nextAt, lag: systemClock.now() - dueAt });
    },
    emit: (event) => {
      if (event.type === 'scheduler.overlapped') overlapped += 1;
      if (event.type !== 'scheduler.missed') return;
      missed[event.project] = (missed[event.project] ?? 0) + event.count;
    },
    onError: (error) => {
      throw error;
    },
  });
  scheduler.set(
    schedules.map((each) => ({ ...each, lastPollAt: start })),
    0,
  );
  scheduler.start();
  for (const step of steps) {
    if ('pass' in step) await time.pass(step.pass);
    else if ('jump' in step) time.jump(step.jump);
    else time.stop(step.stop);
    marks.push(time.monotonic());
  }
  scheduler.stop();
  await time.pass(5000);
  const outcome: Outcome = { starts, missed, overlapped, marks };
  console.log(JSON.stringify(outcome));
}
process.exit();

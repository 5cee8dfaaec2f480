import type { Schedule } from '../../../src/schedule/cron.ts';

/** Returns the next runs after a moment, as ISO texts without milliseconds. */
export function runsAfter(schedule: Schedule, from: string, count: number): readonly string[] {
  const runs: string[] = [];
  let at = Date.parse(from);
  for (let left = count; left > 0; left -= 1) {
    at = schedule.nextAfter(at);
    runs.push(new Date(at).toISOString().replace('.000', ''));
  }
  return runs;
}

import type { Outcome, Scenario } from './scenario.ts';

const SECOND = 1000;
/** Time until a jump is detected, within a second, and the start after it, ms. */
const NOTICED_WITHIN = 2 * SECOND;

export interface Verdict {
  readonly starts: number;
  readonly missed: number;
  /** Longest pause between two starts, monotonic ms. */
  readonly longestPause: number;
  readonly faults: readonly string[];
}

/**
 * Checks a schedule that runs every `period` ms at any hour:
 * - A due time comes twice only if the clock is set back by a period or more.
 * - Without a setback each tick starts or counts as missed; with one, none is missed.
 * - A period has at most one extra start.
 * - The time between two starts is at most the sum of the stops, a period, the time to notice, and the largest setback if
 *   that is less than a period.
 */
export function judgeRhythm(
  { name, steps, start }: Scenario,
  { starts, missed, overlapped, marks }: Outcome,
  id: string,
  period: number,
): Verdict {
  const faults: string[] = [];
  const fault = (what: string) => faults.push(`${name}: ${what}`);
  const own = starts.filter((each) => each.id === id);
  const count = missed[id] ?? 0;
  const jumps = steps.flatMap((step) => ('jump' in step ? [step.jump] : []));
  const stopped = steps.reduce((sum, step) => sum + ('stop' in step ? step.stop : 0), 0);
  const setBack = -Math.min(0, ...jumps);

  if (overlapped > 0) fault(`${overlapped} overlapped runs`);
  if (own.some(({ lag }) => lag < -20)) fault('a start before its time');
  if (setBack < period && new Set(own.map(({ dueAt }) => dueAt)).size < own.length) {
    fault('a tick ran twice');
  }
  if (setBack === 0) {
    const from = Math.floor(start / period) * period;
    const ticks = ((own.at(-1)?.dueAt ?? from) - from) / period;
    const capped = ticks > 100_000;
    if (capped ? count !== 100_000 : own.length + count !== ticks) {
      fault(`${ticks} ticks, but ${own.length} starts and ${count} missed`);
    }
  } else if (count > 0) {
    fault(`${count} missed by a clock that was set back`);
  }
  const begin = (marks[0] ?? 0) - (passOf(steps[0]) ?? 0);
  const elapsed = (marks.at(-1) ?? 0) - begin - stopped;
  const most = Math.floor(elapsed / period) + 1 + steps.filter((step) => !('pass' in step)).length;
  if (own.length > most) fault(`${own.length} starts where ${most} are the most`);
  let longestPause = 0;
  for (const [index, { at }] of own.entries()) {
    longestPause = Math.max(longestPause, at - (own[index - 1]?.at ?? begin));
    const inAPeriod = own.filter((other) => other.at >= at && other.at < at + period - 20).length;
    if (inAPeriod > 2) fault(`${inAPeriod} starts within a period`);
  }
  longestPause = Math.max(longestPause, (marks.at(-1) ?? 0) - (own.at(-1)?.at ?? begin));
  const setBackAtMost = setBack < period ? setBack : 0;
  if (longestPause > stopped + period + NOTICED_WITHIN + setBackAtMost) {
    fault(`no start for ${longestPause / SECOND} s`);
  }
  return { starts: own.length, missed: count, longestPause, faults };
}

/** Checks that a schedule of one local time a day runs once around a change of daylight saving. */
export function judgeOnce({ name }: Scenario, { starts }: Outcome, id: string): readonly string[] {
  const runs = starts.filter((each) => each.id === id).length;
  return runs === 1 ? [] : [`${name}: ${id} ran ${runs} times`];
}

function passOf(step: Scenario['steps'][number] | undefined): number | undefined {
  return step !== undefined && 'pass' in step ? step.pass : undefined;
}

import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { watchFastDaemon } from './clock/fast-daemon.ts';
import { judgeOnce, judgeRhythm, type Verdict } from './clock/judge.ts';
import type { Outcome, Scenario } from './clock/scenario.ts';
import { daylightSavings, JUMPS, jumps, RHYTHMS, STOP } from './clock/scenarios.ts';
import { randomNumbers } from './random.ts';
import { type Row, SOURCE } from './row.ts';

const CHILD = fileURLToPath(new URL('clock/child.ts', import.meta.url));

/** Clocks that are set and processes that stand still, for the scheduler in virtual time and for a whole daemon. */
export const clock: Row = {
  name: 'clock',
  bug: {
    what: 'every tick that was missed is run, one after the other',
    file: 'schedule/scheduler.ts',
    replace: [
      ['entry.dueAt = dueAfter(entry, now);', 'entry.dueAt = dueAfter(entry, ranAt + offset);'],
    ],
  },
  run: async ({ short, seed, print, source = SOURCE }) => {
    const shifted = jumps(short ? 3 : 100, randomNumbers(seed));
    const changes = daylightSavings(short ? 2 : 6);
    const outcomes = await play(source, [...shifted, ...changes]);
    const faults: string[] = [];
    const verdicts = new Map<string, Verdict[]>();
    for (const [index, scenario] of shifted.entries()) {
      const verdict = judgeRhythm(scenario, outcomeOf(outcomes, index), '*/10 * * * * *', 10_000);
      faults.push(...verdict.faults);
      verdicts.set(scenario.name, [...(verdicts.get(scenario.name) ?? []), verdict]);
    }
    for (const [index, scenario] of changes.entries()) {
      const outcome = outcomeOf(outcomes, shifted.length + index);
      for (const [id, period] of Object.entries(RHYTHMS)) {
        const { missed, faults: found } = judgeRhythm(scenario, outcome, id, period);
        faults.push(...found);
        if (missed > 0) faults.push(`${scenario.name}: ${missed} missed`);
      }
      for (const id of scenario.once) faults.push(...judgeOnce(scenario, outcome, id));
    }
    if (faults.length > 0) throw new Error(faults.slice(0, 20).join('\n'));
    print('the scheduler is done');
    const daemon = await watchFastDaemon(source, short ? 300 : 60);
    if (daemon.faults.length > 0) throw new Error(daemon.faults.join('\n'));
    return [
      ...[...JUMPS.map(([name]) => name), STOP].map(
        (name) => [`${name}, every 10 s`, summary(verdicts.get(name) ?? [])] as const,
      ),
      [
        'changes of daylight saving',
        `${changes.length} in ${new Set(changes.map(({ schedules }) => schedules[0]?.timezone)).size} zones: schedules of an hour * without a pause, times of a day once, 0 missed`,
      ],
      ['ticks run twice but by a clock set back', '0'],
      ['a daemon in SIGSTOP for 10 minutes', daemon.stop],
      [
        'its clock then set by 1 h and 1 year, both ways',
        `it polled on and wrote ${daemon.failureLines} of ${daemon.failureLines} failure lines, 0 negative durations`,
      ],
    ];
  },
};

async function play(source: string, scenarios: readonly Scenario[]): Promise<readonly Outcome[]> {
  const child = spawn(process.execPath, [CHILD, source], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(scenarios));
  const lines = (await text(child.stdout)).trim().split('\n');
  return lines.map((line) => JSON.parse(line) as Outcome);
}

function outcomeOf(outcomes: readonly Outcome[], index: number): Outcome {
  const outcome = outcomes[index];
  if (outcome === undefined) throw new Error('the scheduler ended early');
  return outcome;
}

function summary(verdicts: readonly Verdict[]): string {
  const range = (of: (verdict: Verdict) => number) => {
    const values = verdicts.map(of);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return least === most ? String(least) : `${least} to ${most}`;
  };
  const pause = Math.max(...verdicts.map(({ longestPause }) => longestPause)) / 1000;
  return `${verdicts.length} times: ${range(({ starts }) => starts)} starts, ${range(({ missed }) => missed)} missed and counted, longest pause ${pause} s`;
}

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { watchFastDaemon } from './clock/fast-daemon.ts';
import { judgeOnce, judgeRhythm, type Verdict } from './clock/judge.ts';
import type { Outcome, Scenario } from './clock/scenario.ts';
import { daylightSavings, JUMPS, jumps, RHYTHMS, STOP } from './clock/scenarios.ts';
import { randomNumbers } from './random.ts';
import { type Row, SOURCE } from './row.ts';

const CHILD = fileURLToPath(new URL('clock/child.ts', import.meta.url));

/** Checks the scheduler in virtual time, and a whole daemon, under clock changes and suspended processes. */
export const clock: Row = {
  name: 'clock',
  run: async ({ short, seed, print, source = SOURCE }) => {
    const shifted = jumps(short ? 3 : 100, randomNumbers(seed));
    const changes = daylightSavings(short ? 2 : 6);
    const faults: string[] = [];
    const verdicts = new Map<string, Verdict[]>();
    for await (const [index, outcome] of play(source, [...shifted, ...changes])) {
      const jump = shifted[index];
      const change = changes[index - shifted.length];
      if (jump !== undefined) {
        const verdict = judgeRhythm(jump, outcome, '*/10 * * * * *', 10_000);
        faults.push(...verdict.faults);
        verdicts.set(jump.name, [...(verdicts.get(jump.name) ?? []), verdict]);
      } else if (change !== undefined) {
        faults.push(...judgeChange(change, outcome));
      }
      // A faulty scheduler may walk through a year of ticks.
      if (faults.length > 0) break;
    }
    if (faults.length > 0) throw new Error(faults.slice(0, 20).join('\n'));
    print('the scheduler is done');
    const daemon = await watchFastDaemon(source, short ? 100 : 60);
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

/** Yields the outcome of each scenario, in order. */
async function* play(
  source: string,
  scenarios: readonly Scenario[],
): AsyncGenerator<readonly [index: number, outcome: Outcome]> {
  const child = spawn(process.execPath, [CHILD, source], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    child.stdin.end(JSON.stringify(scenarios));
    let index = 0;
    for await (const line of createInterface(child.stdout)) {
      yield [index, JSON.parse(line) as Outcome];
      index += 1;
    }
    if (index < scenarios.length) throw new Error('the scheduler ended early');
  } finally {
    child.kill('SIGKILL');
  }
}

function judgeChange(
  scenario: Scenario & { readonly once: readonly string[] },
  outcome: Outcome,
): readonly string[] {
  const rhythms = Object.entries(RHYTHMS).flatMap(([id, period]) => {
    const { missed, faults } = judgeRhythm(scenario, outcome, id, period);
    return missed > 0 ? [...faults, `${scenario.name}: ${missed} missed`] : faults;
  });
  return [...rhythms, ...scenario.once.flatMap((id) => judgeOnce(scenario, outcome, id))];
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

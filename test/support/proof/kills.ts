import { chain, type ChainReport } from './kill/chain.ts';
import { STEPS } from './kill/steps.ts';
import { type Row, SOURCE } from './row.ts';
import { findStrace } from './strace.ts';

const LONG_KILLS = 1000;
const KILLS_PER_STORE = 100;
const SHORT_MS = 6000;

/** SIGKILL at every named step of a poll and of a failure's report, and at system calls between them. */
export const kills: Row = {
  name: 'kill',
  bug: {
    what: 'a failure is settled before its line is written',
    file: 'monitor/failure-reporter.ts',
    replace: [
      [
        'settlement: Settlement): Promise<void> {\n    emit({\n',
        'settlement: Settlement): Promise<void> {\n    await settle(failure, settlement);\n    emit({\n',
      ],
    ],
  },
  run: async ({ short, seed, print, source = SOURCE }) => {
    const strace = findStrace();
    const reports: ChainReport[] = [];
    const stores = short ? 1 : LONG_KILLS / KILLS_PER_STORE;
    for (let n = 0; n < stores; n += 1) {
      const report = await chain({
        seed: seed + n,
        kills: KILLS_PER_STORE,
        withinMs: short ? SHORT_MS : Infinity,
        passes: short ? 2 : 6,
        source,
        strace,
      });
      if (report.differences.length > 0) {
        const told = report.differences.slice(0, 20).join('\n');
        throw new Error(`store ${n + 1}, seed ${seed + n}:\n${told}`);
      }
      reports.push(report);
      print(`${reports.length} stores, ${sum(reports, killsOf)} kills`);
    }
    const at = Map.groupBy(
      reports.flatMap((report) => [...report.kills]),
      ([name]) => name,
    );
    const counts = [...at].map(
      ([name, list]) => [name, list.reduce((total, [, n]) => total + n, 0)] as const,
    );
    const named = counts.filter(([name]) => STEPS.some((step) => step === name));
    const calls = counts.filter(([name]) => STEPS.every((step) => step !== name));
    const repeated = sum(reports, (report) => report.repeatedLines);
    const failures = sum(reports, (report) => report.failures);
    const told = sum(reports, (report) => report.failureLines) - repeated;
    return [
      ['kills', `${sum(reports, killsOf)} on ${reports.length} stores`],
      ['of them of the whole daemon', String(sum(reports, (report) => report.daemonKills))],
      ['at named steps', written(named)],
      ['at system calls (strace)', strace === undefined ? 'skipped, no strace' : written(calls)],
      ['transitions', `${sum(reports, (report) => report.transitions)}, 0 lost, 0 doubled`],
      ['totals', 'equal to the transitions'],
      [
        'moves to FAILED',
        `${failures}, ${failures - told} still pending: no error_info to be had yet`,
      ],
      [
        'their lines',
        `${sum(reports, (report) => report.failureLines)}, ${repeated} of them repeats that share their transition_id`,
      ],
      ['integrity_check', 'ok after each kill'],
    ];
  },
};

function killsOf(report: ChainReport): number {
  return report.kills.values().reduce((total, count) => total + count, 0);
}

function sum(reports: readonly ChainReport[], of: (report: ChainReport) => number): number {
  return reports.reduce((total, report) => total + of(report), 0);
}

function written(counts: readonly (readonly [name: string, count: number])[]): string {
  const total = counts.reduce((sofar, [, count]) => sofar + count, 0);
  return `${total}: ${counts.map(([name, count]) => `${name} ${count}`).join(', ')}`;
}

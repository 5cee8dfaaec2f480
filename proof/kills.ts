import { chain, type ChainReport } from './kill/chain.ts';
import { STEPS } from './kill/steps.ts';
import { type Row, SOURCE } from './row.ts';
import { findStrace } from './strace.ts';

interface Size {
  readonly stores: number;
  readonly killsPerStore: number;
  /** Maximum pass of a step at which a process dies; the minimum is the first. */
  readonly passes: number;
  /** Index of the step at which the first store begins. */
  readonly firstStep: number;
  /** Number of steps that each next store begins later. */
  readonly stride: number;
}

const LONG: Size = { stores: 10, killsPerStore: 100, passes: 6, firstStep: 0, stride: 5 };
/** At least one kill at each step. */
const SHORT: Size = { stores: 1, killsPerStore: 25, passes: 2, firstStep: 0, stride: 0 };
/** The steps around the line of a failure: enough to notice a deliberate mistake. */
const FEW: Size = {
  stores: 1,
  killsPerStore: 14,
  passes: 1,
  firstStep: STEPS.indexOf('failure line: before'),
  stride: 0,
};
const SIDE_BY_SIDE = 4;

/** SIGKILL at every named step of a poll and of a failure's report, and at system calls between them. */
export const kills: Row = {
  name: 'kill',
  bug: [
    {
      what: 'a failure is counted in a transaction before the one that settles it',
      file: 'store/sqlite/sql/failures.ts',
      replace: [
        [
          'const listing = settle.get(',
          `const own = db.prepare('SELECT listing_key FROM failure WHERE transition_id = ?').pluck();
      countError(Number(own.get(transitionId)), errorInfo, at);
      db.exec('COMMIT');
      db.exec('BEGIN');
      const listing = settle.get(`,
        ],
        [
          'note.run(transitionId);\n      countError(listing, errorInfo, at);',
          'note.run(transitionId);',
        ],
      ],
      notice: /counted, \d+ settled/,
    },
  ],
  run: async ({ short, seed, print, source = SOURCE }) => {
    const strace = findStrace();
    const size = source !== SOURCE ? FEW : short ? SHORT : LONG;
    const { stores, killsPerStore, passes } = size;
    const reports: ChainReport[] = [];
    const waiting = Array.from({ length: stores }, (_, n) => n).values();
    const worker = async () => {
      for (const n of waiting) {
        const report = await chain({
          seed: seed + n,
          kills: killsPerStore,
          firstStep: size.firstStep + n * size.stride,
          passes,
          source,
          strace,
        });
        reports.push(report);
        print(`${reports.length} stores, ${sum(reports, killsOf)} kills`);
        if (report.differences.length > 0) return;
      }
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker));
    const differences = reports.flatMap((report) => report.differences);
    if (differences.length > 0) throw new Error(differences.slice(0, 20).join('\n'));
    const at = Map.groupBy(
      reports.flatMap((report) => [...report.kills]),
      ([name]) => name,
    );
    const counts = [...at].map(
      ([name, list]) => [name, list.reduce((total, [, n]) => total + n, 0)] as const,
    );
    const named = counts.filter(([name]) => STEPS.some((step) => step === name));
    const calls = counts.filter(([name]) => STEPS.every((step) => step !== name));
    if (size !== FEW && named.length < STEPS.length) {
      throw new Error(`no kill at ${STEPS.filter((step) => !at.has(step)).join(', ')}`);
    }
    const repeated = sum(reports, (report) => report.repeatedLines);
    const failures = sum(reports, (report) => report.failures);
    const told = sum(reports, (report) => report.failureLines) - repeated;
    return [
      ['kills', `${sum(reports, killsOf)} on ${reports.length} stores`],
      ['of them of the whole daemon', String(sum(reports, (report) => report.daemonKills))],
      ['at named steps', written(named)],
      ['at system calls (strace)', written(calls)],
      ['transitions', `${sum(reports, (report) => report.transitions)}, 0 lost, 0 doubled`],
      ['totals', 'equal to the transitions'],
      ['moves to FAILED', `${failures}, each with a line, ${failures - told} pending`],
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

import { createNthCall, type Fault } from './disk/nth-call.ts';
import { randomNumbers } from './random.ts';
import { type Figures, type Row, type RowOptions, SOURCE } from './row.ts';
import { findStrace } from './strace.ts';

/** Numbers of calls that fail in a row: one, or enough for retries to fail too. */
const TIMES = [1, 4];
const SHORT_FAULTS = 8;

/** Checks that a store reports each failed write, fsync, truncation or deletion, and loses nothing that it promised. */
export const disk: Row = {
  name: 'disk',
  bug: {
    what: 'a COMMIT that failed is taken for one that did not',
    file: 'store/sqlite/sql/transactions.ts',
    replace: [
      ['if (place.ends) commit.run();', 'if (place.ends) try { commit.run(); } catch { undo(); }'],
    ],
    notice: /something is lost/,
  },
  run: async (options) => await failEachCall(findStrace(), options),
};

async function failEachCall(
  strace: string,
  { short, seed, print, source = SOURCE }: RowOptions,
): Promise<Figures> {
  const nthCall = createNthCall(strace, source);
  const { rows, counts } = await nthCall.measure();
  const all = counts.flatMap(([call, count]) =>
    Array.from({ length: count }, (_, n) => n + 1).flatMap((nth) =>
      (call === 'pwrite64' ? (['EIO', 'ENOSPC'] as const) : (['EIO'] as const)).map(
        (error): Fault => ({ call, error, nth, times: TIMES[nth % TIMES.length] ?? 1 }),
      ),
    ),
  );
  const random = randomNumbers(seed);
  const faults = short
    ? Array.from({ length: SHORT_FAULTS }, () => all[Math.floor(random() * all.length)] ?? all[0])
    : all;
  let failed = 0;
  for (const [index, fault] of faults.entries()) {
    if (fault === undefined) continue;
    failed += (await nthCall.runWithFault(fault, rows)).report.failed.length;
    if (index % 100 === 99) print(`${index + 1} failing calls`);
  }
  return [
    ['calls of a run', counts.map(([call, count]) => `${call} ${count}`).join(', ')],
    ['runs, each with another call failing', `${faults.length}, 0 lost, integrity_check ok`],
    ['operations that failed and were tried again', String(failed)],
  ];
}

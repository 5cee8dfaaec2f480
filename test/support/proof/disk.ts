import { temporaryDirectory } from '../temporary.ts';
import { failing, filling, mountSmallDisk } from './disk/full-disk.ts';
import { createNthCall, type Fault } from './disk/nth-call.ts';
import { type TroubleReport, troubledDaemon } from './disk/troubled-daemon.ts';
import { randomNumbers } from './random.ts';
import { type Figures, type Row, type RowOptions, SOURCE } from './row.ts';
import { findStrace, skip } from './strace.ts';

/** Calls that fail once, and often enough to fail the next tries too. */
const TIMES = [1, 4];
const SHORT_FAULTS = 8;

/**
 * A disk that is full or fails, at any write or fsync: the daemon stays up and says so, nothing that was promised is
 * lost, and it goes on by itself.
 */
export const disk: Row = {
  name: 'disk',
  bug: {
    what: 'a COMMIT that failed is taken for one that did not',
    file: 'store/transactions.ts',
    replace: [
      ['if (place.ends) commit.run();', 'if (place.ends) try { commit.run(); } catch { undo(); }'],
    ],
    notice: /something is lost/,
  },
  run: async (options) => {
    const strace = findStrace();
    const figures = await Promise.all([
      strace === undefined ? [] : failEachCall(strace, options),
      // The daemon that is started is that of the checkout.
      options.source === undefined ? troubleDaemon(strace, options) : [],
    ]);
    return figures.flat();
  },
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
    failed += (await nthCall.suffer(fault, rows)).report.failed.length;
    if (index % 100 === 99) print(`${index + 1} failing calls`);
  }
  return [
    ['calls of a run', counts.map(([call, count]) => `${call} ${count}`).join(', ')],
    ['runs, each with another call failing', `${faults.length}, 0 lost, integrity_check ok`],
    ['operations that failed and were tried again', String(failed)],
  ];
}

async function troubleDaemon(
  strace: string | undefined,
  { short, seed }: RowOptions,
): Promise<Figures> {
  await using directory = await temporaryDirectory();
  const unmount = mountSmallDisk(directory.path);
  if (unmount === undefined) skip('a full disk: no tmpfs can be mounted');
  const fills = unmount === undefined ? 0 : short ? 1 : 20;
  const failures = strace === undefined ? 0 : short ? 1 : 20;
  try {
    const report = await troubledDaemon(directory.path, seed, (pid) => [
      [filling(directory.path), fills],
      ...(strace === undefined ? [] : [[failing(strace, pid), failures] as const]),
    ]);
    return figuresOf(report, fills, failures);
  } finally {
    unmount?.();
  }
}

function figuresOf(report: TroubleReport, fills: number, failures: number): Figures {
  return [
    ['disk filled and freed under the daemon', `${fills} times, up each time`],
    ['phases of failing writes and fsyncs', `${failures}, up each time`],
    ['commit failures counted by /metrics', String(report.commitFailures)],
    ['listings served, not stored', `${report.listings}, ${report.listingsNotStored}`],
    ['transitions, failures', `${report.transitions}, ${report.failures}`],
    ['lines of failures told twice', String(report.repeatedLines)],
    ['differences from the oracle', '0'],
  ];
}

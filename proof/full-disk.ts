import { soak } from '../test/support/soak/soak.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { TOLD_THOUGH_NOT_COMMITTED } from './bug.ts';
import { type CommitFailures, commitFailuresOf, followAlert } from './full-disk/alert.ts';
import { failing, filling, mountSmallDisk } from './full-disk/troubles.ts';
import { required, type Row } from './row.ts';
import { findStrace } from './strace.ts';

const SECONDS_PER_TROUBLE = 3;

/**
 * Checks a daemon whose disk is full or whose writes and fsyncs fail: it stays up and reports it, the shipped alert fires,
 * it recovers by itself, and it records, shows and emits exactly what it was served.
 */
export const fullDisk: Row = {
  name: 'full-disk',
  bug: TOLD_THOUGH_NOT_COMMITTED,
  run: async ({ short, seed, source }) => {
    await using directory = await temporaryDirectory();
    using mounted = new DisposableStack();
    mounted.use(required('a tmpfs that may be mounted', mountSmallDisk(directory.path)));
    const strace = findStrace();
    const kinds = [() => filling(directory.path), (pid: number) => failing(strace, pid)];
    const troubles = kinds.length * (short ? 1 : 20);
    const seen: CommitFailures[] = [];
    const report = await soak({
      parts: [{ seconds: troubles * SECONDS_PER_TROUBLE, kills: 0, troubles }],
      faults: [],
      seed,
      projects: 3,
      directory: directory.path,
      source,
      trouble: (pid) => async (round) => {
        const trouble = kinds[round % kinds.length]?.(pid);
        if (trouble === undefined) throw new Error('there is no way to take the disk');
        return await trouble(Math.floor(round / kinds.length));
      },
      onScrape: (samples) => seen.push(commitFailuresOf(samples)),
    });
    const { differences, observation } = report;
    if (differences.length > 0) {
      throw new Error(`${differences.length} differences:\n${differences.slice(0, 20).join('\n')}`);
    }
    const each = troubles / Math.max(1, kinds.length);
    return [
      ['disk filled and freed under the daemon', `${each} times, up each time`],
      ['phases of failing writes and fsyncs', `${each}, up each time`],
      ['failed commits counted by /metrics', String(seen.at(-1)?.count ?? 0)],
      ['EvalwatchStoreWriteFailing', await followAlert(seen)],
      ['listings served', String(report.listings)],
      [
        'transitions, failures',
        `${observation.transitions.length}, ${observation.failures.length}`,
      ],
      ['differences from the oracle', '0'],
    ];
  },
};

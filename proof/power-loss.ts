import { join } from 'node:path';
import type * as SqliteStore from '../src/store/sqlite/sqlite-store.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { createDisk } from './power-loss/disk.ts';
import { inspect, promisedAfter, restore } from './power-loss/inspect.ts';
import { record, type Step } from './power-loss/recording.ts';
import { randomNumbers } from './random.ts';
import { type Row, SOURCE } from './row.ts';
import { findStrace } from './strace.ts';

/** Shares of unsynced changes that survive a power cut; one is drawn for each image. */
const KEPT = [0, 0.03, 0.5, 0.97, 1];
/** Share of the images that are cut while the store is created, which is short and delicate. */
const AT_THE_START = 0.15;
const LONG = { images: 10_000, polls: 320 };
/** Enough to notice a deliberate mistake. */
const SHORT = { images: 150, polls: 100 };
const TESTS = { images: 30, polls: 40 };
/** Number of kinds of wrong images after which the run ends. */
const MAX_KINDS_OF_WRONG_IMAGES = 8;

/**
 * Records the writes and fsyncs of a run, replays them on a model of a disk, and cuts the power at any step: the store must
 * then open, with everything that had been promised.
 */
export const powerLoss: Row = {
  name: 'power-loss',
  bug: {
    what: 'synchronous=NORMAL',
    file: 'store/sqlite/file/durability.ts',
    replace: [
      ['synchronous = FULL', 'synchronous = NORMAL'],
      ['synchronous === 2', 'synchronous === 1'],
    ],
    notice: /times lost/,
  },
  run: async ({ short, seed, print, source = SOURCE }) => {
    const strace = findStrace();
    const size = source === SOURCE ? TESTS : SHORT;
    const { images, polls } = short ? size : LONG;
    const steps = await record(strace, source, polls);
    const store = (await import(
      join(source, 'store/sqlite/sqlite-store.ts')
    )) as typeof SqliteStore;
    const promised = promisedAfter(
      steps.flatMap((step) => (step.type === 'acknowledge' ? [step.acknowledgement] : [])),
    );
    await using directory = await temporaryDirectory();
    const random = randomNumbers(seed);
    const cuts = cutPoints(steps, images, random);
    const wrong = new Map<string, number>();
    const disk = createDisk();
    let acknowledged = 0;
    let done = 0;
    for (const [index, step] of steps.entries()) {
      disk.apply(step);
      if (step.type === 'acknowledge') acknowledged += 1;
      if (wrong.size >= MAX_KINDS_OF_WRONG_IMAGES) break;
      for (let count = cuts.get(index) ?? 0; count > 0; count -= 1) {
        const kept = KEPT[Math.floor(random() * KEPT.length)] ?? 0;
        const path = await restore(
          disk.cut(() => random() < kept),
          directory.path,
        );
        const found = await inspect(store, path, promised.slice(acknowledged, acknowledged + 2));
        if (found !== undefined) wrong.set(found, (wrong.get(found) ?? 0) + 1);
        done += 1;
        if (done % 1000 === 0) print(`${done} images`);
      }
    }
    const count = (type: Step['type']) => steps.filter((step) => step.type === type).length;
    const sum = [...wrong.values()].reduce((a, b) => a + b, 0);
    if (sum > 0) {
      throw new Error(`${sum} of ${done} images are wrong: ${describe(wrong)}`);
    }
    return [
      ['recorded writes, syncs', `${count('write')}, ${count('sync') + count('sync directory')}`],
      [
        'acknowledged commits, transitions',
        `${acknowledged}, ${promised.at(-1)?.transitions.length}`,
      ],
      ['images after a power cut', String(images)],
      ['lost, corrupt or torn', '0'],
    ];
  },
};

function cutPoints(
  steps: readonly Step[],
  images: number,
  random: () => number,
): ReadonlyMap<number, number> {
  const made = steps.findIndex(({ type }) => type === 'acknowledge');
  const cuts = new Map<number, number>();
  for (let image = 0; image < images; image += 1) {
    const range = random() < AT_THE_START ? made : steps.length;
    const at = Math.floor(random() * range);
    cuts.set(at, (cuts.get(at) ?? 0) + 1);
  }
  return cuts;
}

function describe(wrong: ReadonlyMap<string, number>): string {
  return [...wrong]
    .toSorted(([, a], [, b]) => b - a)
    .map(([what, times]) => `${times} times ${what}`)
    .join('; ');
}

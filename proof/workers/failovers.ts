import type { Figures, RowOptions } from '../row.ts';
import { failOver } from './acts.ts';
import { settle } from './crew.ts';
import { BOUNDS, describe, most, over, repeat } from './figures.ts';
import { createScene } from './scene.ts';

export interface FailoverSize {
  readonly projects: number;
  /** Seconds between two polls. */
  readonly every: number;
  readonly lease: string;
  readonly failovers: number;
  /** Whether times are checked: a busy machine can be late. */
  readonly isTimed: boolean;
}

/** Fails the database over to its standby and back, again and again. */
export async function failOverAgain(
  size: FailoverSize,
  { seed, print }: Pick<RowOptions, 'seed' | 'print'>,
): Promise<Figures> {
  await using scene = await createScene({
    seed,
    source: undefined,
    projects: size.projects,
    every: size.every,
    lease: size.lease,
    hasStandby: true,
  });
  const { crew, projects } = scene;
  await Promise.all([crew.join(), crew.join()]);
  await settle(crew, projects);
  const polled = await repeat(size.failovers, (n) => failOver(scene, n));
  print(`${polled.length} failovers of the database`);
  const { differences, transitions, failures } = await scene.judge();
  const late = polled.flatMap((ms) =>
    over('polled again after a failover', ms, BOUNDS.afterCrashMs),
  );
  const found = [...differences, ...(size.isTimed ? late : [])];
  if (found.length > 0) throw new Error(describe(found));
  return [
    [
      'failovers to a synchronous standby',
      `${polled.length}: polled again ${most(polled)} ms after the primary was killed, at most (bound ${BOUNDS.afterCrashMs}); ${transitions} transitions, ${failures} of them to FAILED: 0 lost, 0 doubled`,
    ],
  ];
}

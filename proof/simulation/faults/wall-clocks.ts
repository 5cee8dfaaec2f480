import type { Course } from '../course.ts';
import { HOUR, MINUTE } from '../durations.ts';
import type { Host, Life } from '../hosts.ts';
import type { Rollouts } from '../rollouts.ts';
import type { Setbacks } from '../setbacks.ts';
import type { Conditions } from './conditions.ts';

/** The wall clocks of the hosts, which are set forward and back. */
export interface WallClocks {
  set(own: Life): void;
  /**
   * Returns the maximum time by which a clock was set back since then, ms. Counts only steps of less than an interval: the
   * last tick does not repeat after them.
   */
  setBackSince(at: number, periodMs: number): number;
}

export interface WallClocksOptions {
  readonly course: Course;
  readonly hosts: readonly Host[];
  readonly setbacks: Pick<Setbacks, 'step' | 'happened'>;
  readonly rollouts: Pick<Rollouts, 'isWatched'>;
  readonly conditions: Pick<Conditions, 'isStoreUsual'>;
}

export function createWallClocks(options: WallClocksOptions): WallClocks {
  const { course, hosts, setbacks, rollouts, conditions } = options;
  const { kernel, isShared } = course;

  return {
    set: (own) => {
      course.act('clock set');
      const isBeforeRun = !isShared && kernel.chance(0.5);
      const most = kernel.chance(0.5) ? 3 * HOUR : 2 * MINUTE;
      const ms = isBeforeRun ? setbacks.step(own.machine) : kernel.between(-1, 1) * most;
      kernel.note(`${own.machine.name} set its clock by ${Math.round(ms)} ms`);
      own.host.wallOffset += ms;
      own.machine.jump(ms);
      own.steadySince &&= kernel.now();
      const since = own.steadySince;
      if (isShared || since === undefined) return;
      setbacks.happened(own.machine, ms, (project) => {
        const isSame = own.host.life === own && own.steadySince === since;
        return isSame && rollouts.isWatched(project) && conditions.isStoreUsual();
      });
    },
    setBackSince: (at, periodMs) => {
      const setBacks = hosts.map(({ life }) => {
        const recent = life?.machine.setBacksSince(at) ?? [];
        return recent.reduce((total, { ms }) => (ms < periodMs ? total + ms : total), 0);
      });
      return Math.max(...setBacks);
    },
  };
}

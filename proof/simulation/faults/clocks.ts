import type { Life, Simulation } from '../parts.ts';
import { HOUR, MINUTE } from '../scenario.ts';

/** The wall clocks of the hosts, which are set forward and back. */
export function createWallClocks({ course, hosts }: Pick<Simulation, 'course' | 'hosts'>) {
  const { kernel } = course;

  return {
    set: (own: Life) => {
      const { host, machine } = own;
      course.act('clock set');
      const most = kernel.chance(0.5) ? 3 * HOUR : 2 * MINUTE;
      const ms = kernel.between(-1, 1) * most;
      kernel.note(`${machine.name} set its clock by ${Math.round(ms)} ms`);
      host.wallOffset += ms;
      machine.jump(ms);
      own.steadySince &&= kernel.now();
    },
    /**
     * Returns the maximum time by which a clock was set back since then, ms. Counts only steps of less than an interval: the
     * last tick does not repeat after them.
     */
    setBackSince: (at: number, periodMs: number) => {
      const setBacks = hosts.map(({ life }) => {
        const recent = life?.machine.setBacksSince(at) ?? [];
        return recent.reduce((total, { ms }) => (ms < periodMs ? total + ms : total), 0);
      });
      return Math.max(...setBacks);
    },
  };
}

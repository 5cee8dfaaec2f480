import type { Course } from '../course.ts';
import { MINUTE } from '../durations.ts';
import type { Endings } from '../endings.ts';
import type { Host } from '../hosts.ts';
import type { Conditions } from './conditions.ts';
import type { DatabaseClock } from './database-clock.ts';
import type { Failovers } from './failovers.ts';
import type { Outages } from './outages.ts';
import type { Partitions } from './partitions.ts';
import type { WallClocks } from './wall-clocks.ts';

/** Mean time between two faults where one host runs, minutes. */
const MEAN_INTERVAL_MINUTES = 25;

export interface DisturbancesOptions {
  readonly course: Course;
  /** Draws when a fault comes, which one, and where. */
  readonly pick: () => number;
  readonly hosts: readonly Host[];
  readonly endings: Pick<Endings, 'kill' | 'stop' | 'pause'>;
  readonly wallClocks: Pick<WallClocks, 'set'>;
  readonly databaseClock: Pick<DatabaseClock, 'setBack'>;
  readonly conditions: Pick<Conditions, 'worsenNetwork'>;
  readonly failovers: Pick<Failovers, 'failOver'>;
  readonly outages: Pick<Outages, 'worsenStore'>;
  readonly partitions: Pick<Partitions, 'begin'>;
}

/** Begins to disturb the hosts from time to time, until the calm. */
export function startDisturbances(options: DisturbancesOptions): void {
  const { course, pick, hosts, endings, wallClocks, databaseClock } = options;
  const { kernel, isShared, bug } = course;

  /** Returns the kind of fault that a random number stands for. */
  function faultOf(drawn: number) {
    if (drawn < 0.3) return 'kill';
    if (drawn < 0.4) return 'stop';
    if (drawn < 0.6) return 'pause';
    if (drawn < 0.7) return 'clock set';
    if (drawn < 0.85) return 'bad network';
    if (!isShared || drawn < 0.9) return 'bad store';
    return drawn < 0.93 ? 'partition' : 'failover';
  }

  function disturb(): void {
    if (course.isCalm()) return;
    const [wait, place, drawn] = [pick(), pick(), pick()];
    const minutes = -Math.log(1 - wait) * MEAN_INTERVAL_MINUTES;
    kernel.after((minutes * MINUTE) / (2 * hosts.length - 1), disturb);
    const own = hosts[Math.floor(place * hosts.length)]?.life;
    const kind = faultOf(drawn);
    if (own === undefined || own.machine.isPaused()) return;
    if (kind === 'kill') void endings.kill(own).catch(bug);
    else if (kind === 'stop') {
      if (own.steadySince !== undefined) void endings.stop(own).catch(bug);
    } else if (kind === 'pause') endings.pause(own);
    else if (kind === 'clock set') {
      if (isShared && kernel.chance(0.4)) databaseClock.setBack();
      else wallClocks.set(own);
    } else if (kind === 'bad network') options.conditions.worsenNetwork();
    else if (kind === 'failover') options.failovers.failOver();
    else if (kind === 'partition') options.partitions.begin(own.host);
    else options.outages.worsenStore(own);
  }

  disturb();
}

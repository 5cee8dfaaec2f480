import type { Clock } from '../monitor/ports/clock.ts';
import { createScheduler, type Scheduler } from '../schedule/scheduler.ts';
import type { Engine } from './engine.ts';
import { endProcess } from './lifecycle.ts';

export interface Scheduling extends Omit<Scheduler, 'set'> {
  /** Schedules the configured projects. Projects that another worker owns get a schedule but are not polled. */
  apply(): void;
}

/** Creates the scheduler of the engine's projects. */
export function createScheduling(engine: Engine, clock: Clock): Scheduling {
  const scheduler = createScheduler({
    clock,
    emit: engine.emit,
    mayRun: (id) => engine.mayPoll(id),
    run: async (id, run) => {
      await engine.poll(id, run);
    },
    onError: endProcess,
  });
  const apply = () => {
    const projects = engine.projects().map(({ health, ...project }) => ({
      ...project,
      lastPollAt: health.lastPollAt,
      isOwnedElsewhere: !engine.mayPoll(project.id),
    }));
    scheduler.set(projects, engine.config().jitterMs);
  };
  engine.onOwnershipChange(apply);
  return { ...scheduler, apply };
}

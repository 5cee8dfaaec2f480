import type { EventOf, MonitorEvent } from '../../../src/monitor/events.ts';
import type { Machine } from '../machine.ts';
import type { Simulation } from '../parts.ts';
import { MAX_REQUESTS_PER_SECOND, MINUTE, SECOND } from '../scenario.ts';

/** Time after the last fault by which everything has recovered, ms: a lease of the dead can last for 10 minutes. */
const RECOVERY_MS = 15 * MINUTE;
/** Margin for a poll or a report that waits for no other request, ms. */
const MARGIN_MS = 2 * SECOND;
/** Events that have no cause while nothing fails and neither the processes nor the configuration change. */
const CAUSELESS: ReadonlySet<MonitorEvent['type']> = new Set<MonitorEvent['type']>([
  'api.retry_scheduled',
  'notification.failed',
  'scheduler.missed',
  'scheduler.overlapped',
  'store.commit_failed',
  'store.commit_refused',
  'worker.claimed',
  'worker.config_differs',
  'worker.lease_lost',
  'worker.projects_restored',
  'worker.released',
]);

/** Checks that nothing unusual happens in the time without faults, once everything has recovered. */
export function createCalm({ course, hosts, world }: Simulation) {
  const { kernel, projects, fault } = course;
  let recoveredAt = Infinity;
  const periods = new Map(projects.map(({ id, periodMs }) => [id, periodMs]));
  const lastStarts = new Map<string, number>();
  /** The projects that each process polls. */
  const polled = new Map<string, Set<string>>();
  /** Failures that are stored and not reported. */
  const unreported = new Set<number>();
  /** Number of failures so far. */
  let failures = 0;

  const hasRecovered = () => kernel.now() >= recoveredAt;

  /** Returns the time within which requests have gone out, if so many wait at the same time, ms. */
  function withinMs(requests: number): number {
    return MARGIN_MS + (requests / MAX_REQUESTS_PER_SECOND) * SECOND;
  }

  function checkPoll(process: string, { project, lagMs }: EventOf<'scheduler.started_poll'>): void {
    if (lagMs > withinMs(projects.length)) {
      fault(`${project} was polled ${Math.round(lagMs / SECOND)} s late`);
    }
    checkInterval(project);
    lastStarts.set(project, kernel.now());
    polled.set(process, (polled.get(process) ?? new Set()).add(project));
  }

  /** Checks that the last poll of a project is not longer ago than its schedule says. */
  function checkInterval(project: string): void {
    const ms = kernel.now() - Math.max(recoveredAt, lastStarts.get(project) ?? -Infinity);
    const most = (periods.get(project) ?? 0) + withinMs(projects.length);
    if (ms > most) fault(`${project} was not polled for ${Math.round(ms / SECOND)} s`);
  }

  function checkTransition({ project, transition }: EventOf<'record.transition'>): void {
    const { transitionId, id, to } = transition;
    if (to !== 'FAILED') return;
    unreported.add(transitionId);
    failures += 1;
    const at = kernel.now();
    const reported = failures - unreported.size;
    // The requests of all projects, and of failures that come later, can go out before.
    const dueAt = () => at + withinMs(projects.length + failures - reported);
    const look = () => {
      if (!unreported.has(transitionId) || !hasRecovered()) return;
      // A prompt that runs again has no error_info, and is asked again later.
      if (world.prompts(project)?.get(id)?.status !== 'FAILED') return;
      if (kernel.now() < dueAt()) kernel.after(dueAt() - kernel.now(), look);
      else fault(`the failure of ${id} of ${project} is not reported`);
    };
    kernel.after(dueAt() - at, look);
  }

  function check(process: string, event: MonitorEvent): void {
    if (CAUSELESS.has(event.type)) {
      fault(`${process} emits ${JSON.stringify(event)} although nothing has happened`);
    } else if (event.type === 'poll.finished' && event.failure !== undefined) {
      fault(
        `a poll of ${event.project} failed although nothing has happened: ${event.failure.reason}`,
      );
    } else if (event.type === 'scheduler.started_poll') checkPoll(process, event);
    else if (event.type === 'record.transition') checkTransition(event);
  }

  return {
    /** Begins the time without faults, unless it has begun. */
    begin: () => {
      if (recoveredAt === Infinity) recoveredAt = kernel.now() + RECOVERY_MS;
    },
    observe: ({ name }: Machine, event: MonitorEvent) => {
      if (event.type === 'prompt.failed') unreported.delete(event.transitionId);
      if (hasRecovered()) check(name, event);
    },
    /** Ends the checks, before the processes are stopped. */
    end: () => {
      for (const { id } of projects) checkInterval(id);
      const maxOwned = Math.ceil(projects.length / hosts.length);
      let total = 0;
      for (const [process, own] of polled) {
        total += own.size;
        if (own.size > maxOwned) {
          fault(`${process} polls ${own.size} projects, more than its share`);
        }
      }
      if (total !== projects.length) fault(`${total} of ${projects.length} projects are polled`);
      recoveredAt = Infinity;
    },
  };
}

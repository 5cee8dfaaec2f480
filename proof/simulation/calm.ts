import type { EventOf, MonitorEvent } from '../../src/monitor/events.ts';
import { MAX_REQUESTS_PER_SECOND } from './configuration.ts';
import type { Course } from './course.ts';
import { MINUTE, SECOND } from './durations.ts';
import type { Host } from './hosts.ts';
import type { Machine } from './machine.ts';

/** Time after the last fault by which everything has recovered from it, ms: leases that seemed longer have ended. */
const RECOVERY_MS = 15 * MINUTE;
/** Time that a poll or a report takes at most if it waits for no other request, ms. */
const MAX_ALONE_MS = 2 * SECOND;
/** Events that have no cause while nothing fails and neither the processes nor the configuration change. */
const CAUSELESS: ReadonlySet<MonitorEvent['type']> = new Set<MonitorEvent['type']>([
  'api.retry_scheduled',
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

/** Checks that nothing unusual happens in the time without faults at the end, once everything has recovered. */
export interface Calm {
  begin(): void;
  observe(machine: Machine, event: MonitorEvent): void;
  /** Ends the checks, before the processes are stopped. */
  end(): void;
}

export function createCalm({ kernel, projects, fault }: Course, hosts: readonly Host[]): Calm {
  /** Maximum time from a due run to its first request, ms: all projects can be due at once. */
  const maxLagMs = MAX_ALONE_MS + (projects.length / MAX_REQUESTS_PER_SECOND) * SECOND;
  /** Maximum time from the commit of a failure to its line, ms: its request waits with those of other failures, too. */
  const maxReportMs = 2 * maxLagMs;
  let recoveredAt = Infinity;
  /** The projects that each process polls. */
  const polled = new Map<string, Set<string>>();
  /** Failures that are stored and not reported. */
  const unreported = new Set<number>();

  const isCalm = () => kernel.now() >= recoveredAt;

  function checkTransition({ project, transition }: EventOf<'record.transition'>): void {
    const { transitionId, id, to } = transition;
    if (to !== 'FAILED') return;
    unreported.add(transitionId);
    kernel.after(maxReportMs, () => {
      if (!unreported.has(transitionId) || !isCalm()) return;
      fault(
        `the failure of ${id} of ${project} was not reported within ${Math.round(maxReportMs / SECOND)} s`,
      );
    });
  }

  function checkPoll(process: string, { project, lagMs }: EventOf<'scheduler.started_poll'>): void {
    if (lagMs > maxLagMs) fault(`${project} was polled ${Math.round(lagMs / SECOND)} s late`);
    polled.set(process, (polled.get(process) ?? new Set()).add(project));
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
    begin: () => {
      recoveredAt = kernel.now() + RECOVERY_MS;
    },
    observe: ({ name }, event) => {
      if (event.type === 'prompt.failed') unreported.delete(event.transitionId);
      // The prompt is not FAILED any more. It is asked again later; the event does not tell which prompt it is.
      else if (event.type === 'error_info.fetched' && !event.ok) unreported.clear();
      if (isCalm()) check(name, event);
    },
    end: () => {
      recoveredAt = Infinity;
      const most = Math.ceil(projects.length / hosts.length);
      for (const [process, own] of polled) {
        if (own.size > most) fault(`${process} polls ${own.size} projects, more than its share`);
      }
    },
  };
}

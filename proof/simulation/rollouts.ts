import type { Config } from '../../src/config/config.ts';
import type { ConfiguredProjects } from './backend.ts';
import type { Life, Simulation } from './parts.ts';
import { configOf } from './scenario.ts';

/** Mean time between two changes of the configuration, ms. */
const MEAN_INTERVAL_MS = 40 * 60_000;
/** Time within which the processes follow a change, ms. */
const MAX_ROLLOUT_MS = 3 * 60_000;
/** Time until a failed reload is repeated, ms. */
const AGAIN_MS = 5000;
/** Probability that a process starts with the configuration that it had before. */
const STARTS_WITH_OLD = 0.3;
/** Maximum time from a request to the reload that meets it, ms. */
const MEETING_MS = 40;

/** @param pick draws when the configuration changes */
export function createRollouts(simulation: Simulation, pick: () => number) {
  const { course, hosts, backend } = simulation;
  const { kernel, fault, bug } = course;
  const whole = configOf(course.isShared, course.projects);
  let wanted = whole;
  let isOver = false;
  /** Last configuration of each host, by name. */
  const lastOf = new Map<string, Config>();
  /** Processes that reload during their next request. */
  const meeting = new Set<Life>();
  /** Number of starts, reloads, failovers and changes by processes that do not reload: constant while a reload is alone. */
  let changes = 0;
  let mayLackChanges = false;

  /** Returns the processes that live. */
  function processes(): readonly Life[] {
    return hosts.flatMap(({ life }) => life ?? []);
  }

  function isRunning({ steadySince, machine }: Life): boolean {
    return steadySince !== undefined && !machine.isPaused();
  }

  /** Returns the ids of the projects that are configured in the store. */
  function stored(): Promise<readonly string[]> {
    return kernel.real(async () => {
      const reader = await backend.openReader();
      const snapshot = await reader.snapshot();
      await reader.close();
      return snapshot.projects.map(({ project }) => project);
    });
  }

  function report(own: Life, state: 'begins' | 'ends'): void {
    const isCurrent = own.host.life === own;
    if (isCurrent && own.steadySince !== undefined) own.steadySince = kernel.now();
    if (state === 'begins') {
      course.act('reload');
      if (isCurrent) simulation.outages.reloading(own);
    } else course.disturbed();
  }

  function change(): void {
    if (isOver) return;
    kernel.after(-Math.log(1 - pick()) * MEAN_INTERVAL_MS, change);
    const kept = whole.projects.filter(() => kernel.chance(0.7));
    const projects = kept.length === 0 ? whole.projects : kept;
    wanted = { ...whole, projects };
    kernel.note(`WANTED ${idsOf(wanted).join()}`);
    for (const process of processes()) follow(process);
  }

  function follow(process: Life): void {
    kernel.after(kernel.between(0, MAX_ROLLOUT_MS), () => {
      if (!isOver && kernel.chance(0.5)) meeting.add(process);
      else reload(process);
    });
  }

  function reload(process: Life): void {
    meeting.delete(process);
    if (!processes().includes(process) || process.config === wanted) return;
    if (!isRunning(process) || process.isReloading) {
      kernel.after(AGAIN_MS, () => reload(process));
      return;
    }
    void apply(process, wanted).catch(bug);
  }

  async function apply(process: Life, next: Config): Promise<void> {
    const before = await stored();
    const own = (changes += 1);
    const others = processes().filter((other) => other !== process);
    const isAlone = !others.some((other) => other.isReloading);
    process.isReloading = true;
    report(process, 'begins');
    const { ok, reasons } = (await process.reload?.(next)) ?? { ok: false, reasons: [] };
    process.isReloading = false;
    if (!processes().includes(process)) return;
    report(process, 'ends');
    kernel.note(`${process.host.name} reloads: ${ok ? 'done' : reasons.join()}`);
    if (ok) {
      process.config = next;
      process.configuredAt = kernel.now();
      lastOf.set(process.host.name, next);
    } else {
      const isUncertain = reasons.some((reason) => reason.includes('may have changed already'));
      const after = await stored();
      if (!isUncertain && isAlone && own === changes && after.join() !== before.join()) {
        fault(`a reload failed, and ${after.join()} are configured instead of ${before.join()}`);
      }
    }
    kernel.after(AGAIN_MS, () => reload(process));
  }

  return {
    /** Begins to change the configuration. */
    start: () => kernel.after(-Math.log(1 - pick()) * MEAN_INTERVAL_MS, change),
    /** Makes all processes follow the first configuration from now on. */
    end: () => {
      isOver = true;
      wanted = whole;
      for (const process of processes()) reload(process);
    },
    /** Returns the configuration with which a process starts. */
    atStart: (host: string) => {
      changes += 1;
      const last = lastOf.get(host);
      const config =
        last !== undefined && last !== wanted && !isOver && kernel.chance(STARTS_WITH_OLD)
          ? last
          : wanted;
      lastOf.set(host, config);
      return config;
    },
    /** Called when a process has started, or has sent a request. */
    started: (process: Life) => {
      if (process.config !== wanted) follow(process);
    },
    sent: (process: Life) => {
      if (!meeting.delete(process)) return;
      kernel.after(kernel.between(0, MEETING_MS), () => reload(process));
    },
    /** Called when the database has changed the configured projects for a process, which may be dead by now. */
    configured: (process: Life, { projects }: Omit<ConfiguredProjects, 'added'>) => {
      mayLackChanges = false;
      const reloads = processes().includes(process) && process.isReloading;
      // A restoration that was sent before the reload may arrive during it.
      const isRestored = projects.join() === idsOf(process.config).join();
      if (!reloads || isRestored) changes += 1;
    },
    /** Called when a standby has taken the place of the database, which may have lost changes. */
    failedOver: () => {
      changes += 1;
      mayLackChanges = true;
    },
    stored,
    /** Whether all processes that run have the same configuration. */
    isAgreed: () => new Set(processes().map(({ config }) => config)).size <= 1,
    /** Whether a failover may have lost configured projects that nobody has configured since. */
    mayLackChanges: () => mayLackChanges,
    /** Whether a project is configured in every process that runs, and none is reloading. */
    isWatched: (project: string) =>
      processes().every(({ config, isReloading }) => {
        return !isReloading && config.projects.some(({ id }) => id === project);
      }),
  };
}

function idsOf({ projects }: Config): readonly string[] {
  return projects.map(({ id }) => id);
}

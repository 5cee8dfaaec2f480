import type { Config } from '../../src/config/config.ts';
import type { ReloadResult } from '../../src/web/reload-result.ts';
import type { ConfiguredProjects } from './backend.ts';
import type { Kernel } from './kernel.ts';

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

/** A process that can be given another configuration. */
export interface Reloading {
  readonly host: { readonly name: string };
  /** Configuration in force, or in force once the process has started. */
  config: Config;
  /** Virtual time at which it came into force. */
  configuredAt: number;
  /** Undefined until the process has started. */
  readonly reload?: (next: Config) => Promise<ReloadResult>;
  isReloading: boolean;
}

/** The configuration as people change it, and the reloads by which the processes follow. */
export interface Rollouts {
  /** Begins to change the configuration. */
  start(): void;
  /** Makes all processes follow the first configuration from now on. */
  end(): void;
  /** Returns the configuration with which a process starts. */
  atStart(host: string): Config;
  /** Called when a process has started, or has sent a request. */
  started(process: Reloading): void;
  sent(process: Reloading): void;
  /** Called when the database has changed the configured projects for a process, which may be dead by now. */
  configured(process: Reloading, change: Omit<ConfiguredProjects, 'added'>): void;
  /** Called when a standby has taken the place of the database, which may have lost changes. */
  failedOver(): void;
  /** Returns the ids of the projects that are configured in the store. */
  stored(): Promise<readonly string[]>;
  /** Whether a project is configured in every process that runs, and none is reloading. */
  isWatched(project: string): boolean;
  /** Whether all processes that run have the same configuration. */
  isAgreed(): boolean;
  /** Whether a failover may have lost configured projects that nobody has configured since. */
  mayLackChanges(): boolean;
}

export interface RolloutsOptions {
  readonly kernel: Kernel;
  /** Draws when the configuration changes. */
  readonly pick: () => number;
  readonly whole: Config;
  readonly addresses: readonly string[];
  /** Returns the processes that live. */
  readonly processes: () => readonly Reloading[];
  /** Whether a process lives and neither stands still nor stops. */
  readonly isRunning: (process: Reloading) => boolean;
  readonly stored: () => Promise<readonly string[]>;
  /** Called when a reload begins and when it ends, with whether all other processes have followed the change already. */
  readonly onReload: (process: Reloading, state: 'begins' | 'ends', isLast: boolean) => void;
  readonly fault: (text: string) => void;
  readonly onError: (error: unknown) => void;
}

export function createRollouts(options: RolloutsOptions): Rollouts {
  const { kernel, pick, whole, addresses, processes, isRunning, stored, onReload } = options;
  const { fault, onError } = options;
  let wanted = whole;
  let isOver = false;
  /** Last configuration of each host, by name. */
  const lastOf = new Map<string, Config>();
  /** Processes that reload during their next request. */
  const meeting = new Set<Reloading>();
  /** Number of starts, reloads, failovers and changes by processes that do not reload: constant while a reload is alone. */
  let changes = 0;
  let mayLackChanges = false;

  function change(): void {
    if (isOver) return;
    kernel.after(-Math.log(1 - pick()) * MEAN_INTERVAL_MS, change);
    const kept = whole.projects.filter(() => kernel.chance(0.7));
    const projects = kept.length === 0 ? whole.projects : kept;
    const baseUrl = addresses[kernel.chance(0.5) ? 0 : 1] ?? '';
    wanted = { ...whole, projects, service: { ...whole.service, baseUrl } };
    kernel.note(`WANTED ${baseUrl} ${idsOf(wanted).join()}`);
    for (const process of processes()) follow(process);
  }

  function follow(process: Reloading): void {
    kernel.after(kernel.between(0, MAX_ROLLOUT_MS), () => {
      if (!isOver && kernel.chance(0.5)) meeting.add(process);
      else reload(process);
    });
  }

  function reload(process: Reloading): void {
    meeting.delete(process);
    if (!processes().includes(process) || process.config === wanted) return;
    if (!isRunning(process) || process.isReloading) {
      kernel.after(AGAIN_MS, () => reload(process));
      return;
    }
    void apply(process, wanted).catch(onError);
  }

  async function apply(process: Reloading, next: Config): Promise<void> {
    const before = await stored();
    const own = (changes += 1);
    const others = processes().filter((other) => other !== process);
    const isAlone = !others.some((other) => other.isReloading);
    const isLast = isAlone && others.every(({ config }) => config === next);
    process.isReloading = true;
    onReload(process, 'begins', isLast);
    const { ok, reasons } = (await process.reload?.(next)) ?? { ok: false, reasons: [] };
    process.isReloading = false;
    if (!processes().includes(process)) return;
    onReload(process, 'ends', isLast);
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
    start: () => kernel.after(-Math.log(1 - pick()) * MEAN_INTERVAL_MS, change),
    end: () => {
      isOver = true;
      wanted = whole;
      for (const process of processes()) reload(process);
    },
    atStart: (host) => {
      changes += 1;
      const last = lastOf.get(host);
      const config =
        last !== undefined && last !== wanted && !isOver && kernel.chance(STARTS_WITH_OLD)
          ? last
          : wanted;
      lastOf.set(host, config);
      return config;
    },
    started: (process) => {
      if (process.config !== wanted) follow(process);
    },
    sent: (process) => {
      if (!meeting.delete(process)) return;
      kernel.after(kernel.between(0, MEETING_MS), () => reload(process));
    },
    configured: (process, { projects, isConditional }) => {
      mayLackChanges = false;
      const reloads = processes().includes(process) && process.isReloading;
      // A restoration that was sent before the reload may arrive during it.
      const isRestored = isConditional && projects.join() === idsOf(process.config).join();
      if (!reloads || isRestored) changes += 1;
    },
    failedOver: () => {
      changes += 1;
      mayLackChanges = true;
    },
    stored,
    isAgreed: () => new Set(processes().map(({ config }) => config)).size <= 1,
    mayLackChanges: () => mayLackChanges,
    isWatched: (project) =>
      processes().every(({ config, isReloading }) => {
        return !isReloading && config.projects.some(({ id }) => id === project);
      }),
  };
}

function idsOf({ projects }: Config): readonly string[] {
  return projects.map(({ id }) => id);
}

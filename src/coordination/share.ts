import type { Observer } from '../monitor/events.ts';
import type { Coordinator, OwnedProject, Ownership } from './ports.ts';
import { createReleases, type ReleasesOptions } from './releases.ts';
import { withTimeout } from './timeout.ts';

/** Maximum number of projects in one claim. */
const MAX_CLAIM = 1000;
/** Maximum number of projects that one claim looks at: with 100,000, a claim took longer than a beat may. */
const MAX_CANDIDATES = 5000;

/** Change of the projects that this worker may poll. Both lists are empty if it only stops or resumes polling some. */
export interface OwnershipChange {
  /** Projects it owns from now on. */
  readonly taken: readonly OwnedProject[];
  /** Projects it no longer owns: polls of them that still run must change nothing. */
  readonly dropped: readonly string[];
}

export const NO_CHANGE: OwnershipChange = { taken: [], dropped: [] };

/** The projects that this worker owns. */
export interface Share {
  /** Sets the projects that this worker may own. Takes effect with the next `balance`. */
  configure(projects: readonly string[]): void;
  /** Whether this worker owns the project and is not giving it back. */
  owns(project: string): boolean;
  /** Whether this worker owns the project; it may be giving it back. */
  has(project: string): boolean;
  /** Gives back what exceeds the share of one of `workers` workers, and claims what is missing. @throws {StoreError} */
  balance(workers: number): Promise<void>;
  /** Gives every project back. */
  releaseAll(): void;
  /**
   * Gives back what only the database records as owned: the answer to a claim was lost, or a commit was refused.
   * @param recorded number of owned projects according to the database
   * @throws {StoreError}
   */
  releaseStrays(recorded: number): Promise<void>;
  /**
   * Drops what only this worker regards as owned: a request that it had given up took effect late, such as an earlier `join`,
   * or the answer to a release was lost.
   * @param recorded number of owned projects according to the database
   * @throws {StoreError}
   */
  dropUnrecorded(recorded: number): Promise<void>;
  /** Resolves when nothing is being given back any more. */
  released(): Promise<void>;
  /** Drops a project that another worker owns by now. False if it was not owned. */
  drop(project: string): boolean;
  /** Drops every project and returns them. */
  dropAll(): readonly string[];
}

export interface ShareOptions extends Omit<
  ReleasesOptions,
  'coordinator' | 'flush' | 'onReleased' | 'onFailed'
> {
  readonly coordinator: Pick<Coordinator, 'claim' | 'release' | 'ownedBy'>;
  readonly ownership: Pick<Ownership, 'own' | 'disown' | 'flush'>;
  readonly emit: Observer;
  readonly onChange: (change: OwnershipChange) => void;
  /** Number of projects that one of `workers` workers should own. */
  readonly shareSize: (projects: number, workers: number) => number;
  /** Receives errors of releases, which run in the background. */
  readonly onFailure: (error: unknown) => void;
}

export function createShare(options: ShareOptions): Share {
  const { worker, coordinator, ownership, term, clock, timeoutMs } = options;
  const { emit, onChange, shareSize, onFailure } = options;
  let configured: ReadonlySet<string> = new Set();
  const owned = new Set<string>();
  /** Where in `configured` the next claim looks: a beat may end before it has looked at all. */
  let nextPlace = 0;
  const releases = createReleases({
    ...options,
    flush: () => ownership.flush(),
    onReleased: (projects) => {
      for (const project of projects) ownership.disown(project);
      emit({ type: 'worker.released', worker, projects: projects.length, owned: owned.size });
      onChange({ taken: [], dropped: projects });
    },
    onFailed: (projects, error) => {
      for (const project of projects) owned.add(project);
      onChange(NO_CHANGE);
      onFailure(error);
    },
  });
  const { leaving } = releases;

  function release(projects: readonly string[]): void {
    if (projects.length === 0) return;
    for (const project of projects) owned.delete(project);
    releases.start(projects);
    onChange(NO_CHANGE);
  }

  /**
   * Claims free projects until this worker owns `due`, has looked at all, or its lease is another one. Leaves the rest to the
   * next beat after a while, because the lease is not renewed meanwhile.
   */
  async function claimUntil(due: number): Promise<void> {
    const termBefore = term();
    const endsAt = clock.monotonic() + timeoutMs / 2;
    const all = [...configured];
    let looked = 0;
    while (looked < all.length && owned.size < due && clock.monotonic() < endsAt) {
      if (nextPlace >= all.length) nextPlace = 0;
      const candidates = all
        .slice(nextPlace, nextPlace + MAX_CANDIDATES)
        .filter((project) => !owned.has(project));
      const max = Math.min(due - owned.size, MAX_CLAIM);
      const asked =
        candidates.length === 0 ? Promise.resolve([]) : coordinator.claim(worker, candidates, max);
      const taken = await withTimeout(asked, timeoutMs, clock);
      if (termBefore !== term()) return;
      take(taken);
      if (taken.length === max) continue;
      looked += MAX_CANDIDATES;
      nextPlace += MAX_CANDIDATES;
    }
  }

  function drop(projects: readonly string[]): boolean {
    const dropped = projects.filter((project) => owned.delete(project) || leaving.delete(project));
    if (dropped.length === 0) return false;
    for (const project of dropped) ownership.disown(project);
    onChange({ taken: [], dropped });
    return true;
  }

  function take(taken: readonly OwnedProject[]): void {
    if (taken.length === 0) return;
    for (const { project, epoch } of taken) {
      owned.add(project);
      ownership.own(project, epoch);
    }
    emit({ type: 'worker.claimed', worker, projects: taken.length, owned: owned.size });
    onChange({ taken, dropped: [] });
  }

  return {
    configure: (projects) => {
      configured = new Set(projects);
    },
    owns: (project) => owned.has(project),
    has: (project) => owned.has(project) || leaving.has(project),
    balance: async (workers) => {
      const due = shareSize(configured.size, workers);
      const { kept = [], foreign = [] } = Object.groupBy(owned, (project) =>
        configured.has(project) ? 'kept' : 'foreign',
      );
      release([...foreign, ...kept.slice(due)]);
      await claimUntil(due);
    },
    releaseAll: () => release([...owned]),
    releaseStrays: async (recorded) => {
      if (recorded <= owned.size + leaving.size || !releases.isIdle()) return;
      const strays = configured.difference(owned).difference(leaving);
      await withTimeout(coordinator.release(worker, [...strays]), timeoutMs, clock);
    },
    dropUnrecorded: async (recorded) => {
      // Projects that were removed from the configuration have no owner, and are about to be given back.
      const before = owned.intersection(configured);
      if (recorded >= before.size) return;
      const termBefore = term();
      const asked = await withTimeout(coordinator.ownedBy(worker), timeoutMs, clock);
      if (termBefore !== term()) return;
      const kept = new Set(asked);
      drop([...before.difference(kept)]);
    },
    released: () => releases.settled(),
    drop: (project) => drop([project]),
    dropAll: () => {
      const dropped = [...owned, ...leaving];
      for (const project of dropped) ownership.disown(project);
      owned.clear();
      leaving.clear();
      return dropped;
    },
  };
}

import type { Observer } from '../monitor/events.ts';
import { createClaims } from './claims.ts';
import type { Coordinator, OwnedProject, Ownership, OwnershipTotals } from './ports.ts';
import { createReleases, MAX_RELEASE, type ReleasesOptions } from './releases.ts';
import { withTimeout } from './timeout.ts';

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
  /**
   * Gives back what exceeds the share of one of `workers` workers, and claims what is missing if any project may be free.
   * @throws {StoreError}
   */
  balance(workers: number, hasFree: boolean): Promise<void>;
  /** Gives every project back. */
  releaseAll(): void;
  /**
   * Gives back what only the database records as owned: the answer to a claim was lost, a commit was refused, or a standby
   * has lost a release. Drops what only this worker regards as owned, or what the database has under an earlier epoch: a
   * standby has lost its claim, or a request that this worker had given up took effect late, such as an earlier `join`.
   * @param recorded totals according to the database; asks for the names of the projects if they show a difference
   * @returns whether it gave a project back, which is free then
   * @throws {StoreError}
   */
  agree(recorded: OwnershipTotals): Promise<boolean>;
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
  readonly ownership: Pick<Ownership, 'own' | 'epoch' | 'disown' | 'flush'>;
  readonly emit: Observer;
  readonly onChange: (change: OwnershipChange) => void;
  /** Receives errors of releases, which run in the background. */
  readonly onFailure: (error: unknown) => void;
}

export function createShare(options: ShareOptions): Share {
  const { worker, coordinator, ownership, term, clock, timeoutMs } = options;
  const { emit, onChange, onFailure } = options;
  let configured: ReadonlySet<string> = new Set();
  const owned = new Set<string>();
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
  const claim = createClaims({ ...options, owned, take });

  function release(projects: readonly string[]): void {
    if (projects.length === 0) return;
    for (const project of projects) owned.delete(project);
    releases.start(projects);
    onChange(NO_CHANGE);
  }

  /** Returns those that this worker owned until now. */
  function drop(projects: readonly string[]): readonly string[] {
    const dropped = projects.filter((project) => owned.delete(project) || leaving.delete(project));
    if (dropped.length === 0) return dropped;
    for (const project of dropped) ownership.disown(project);
    onChange({ taken: [], dropped });
    return dropped;
  }

  /** Releases projects that only the database records, as many as it can in the time that a beat has for it. */
  async function releaseStrays(strays: readonly string[]): Promise<void> {
    const endsAt = clock.monotonic() + timeoutMs / 2;
    for (let start = 0; start < strays.length; start += MAX_RELEASE) {
      if (clock.monotonic() >= endsAt) return;
      const part = strays.slice(start, start + MAX_RELEASE);
      await withTimeout(coordinator.release(worker, part), timeoutMs, clock);
    }
  }

  /** Yields what the database should record, with epochs. A project has its owner until its release, or until it is removed. */
  function* expectedEpochs(): Generator<readonly [project: string, epoch: number]> {
    for (const project of owned.union(leaving)) {
      if (configured.has(project)) yield [project, ownership.epoch(project) ?? 0];
    }
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
    balance: async (workers, hasFree) => {
      const due = Math.ceil(configured.size / workers);
      const { kept = [], foreign = [] } = Object.groupBy(owned, (project) =>
        configured.has(project) ? 'kept' : 'foreign',
      );
      release([...foreign, ...kept.slice(due)]);
      if (hasFree) await claim(configured, due);
    },
    releaseAll: () => release([...owned]),
    agree: async (recorded) => {
      const { projects, epochs } = totalsOf(expectedEpochs());
      if (recorded.projects === projects && recorded.epochs === epochs) return false;
      const expected = new Map(expectedEpochs());
      const leavingBefore = new Set(leaving);
      const termBefore = term();
      const found = await withTimeout(coordinator.ownedBy(worker), timeoutMs, clock);
      if (termBefore !== term()) return false;
      // A later epoch can be that of a commit whose outcome is being found out.
      const isLost = (project: string) =>
        (found.get(project) ?? -Infinity) < (expected.get(project) ?? 0);
      const dropped = drop([...expected.keys()].filter(isLost));
      if (dropped.length > 0) {
        emit({ type: 'worker.released', worker, projects: dropped.length, owned: owned.size });
      }
      const strays = [...found.keys()].filter(
        (project) => !owned.has(project) && !leaving.has(project) && !leavingBefore.has(project),
      );
      await releaseStrays(strays);
      return strays.length > 0;
    },
    released: () => releases.settled(),
    drop: (project) => drop([project]).length > 0,
    dropAll: () => {
      const dropped = [...owned, ...leaving];
      for (const project of dropped) ownership.disown(project);
      owned.clear();
      leaving.clear();
      return dropped;
    },
  };
}

function totalsOf(owned: Iterable<readonly [project: string, epoch: number]>): OwnershipTotals {
  let projects = 0;
  let epochs = 0;
  for (const [, epoch] of owned) {
    projects += 1;
    epochs += epoch;
  }
  return { projects, epochs };
}

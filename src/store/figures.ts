import type { ErrorTotal } from '../domain/failure.ts';
import { KINDS, type Kind } from '../domain/status.ts';
import type { Summary } from '../domain/summary.ts';
import type { PollHealth, ProjectSnapshot } from '../monitor/ports/store.ts';
import { toListingSnapshot } from './rows.ts';

/** What a snapshot shows of a project. */
export interface ProjectFigures {
  readonly configuredAt: number;
  readonly health: PollHealth;
  readonly summaries: Readonly<Record<Kind, Summary>>;
  /** Settled failures by error_id, in the order of the labels. */
  readonly errors: readonly ErrorTotal[];
}

export function toProjectSnapshot(project: string, figures: ProjectFigures): ProjectSnapshot {
  const { configuredAt, health, summaries, errors } = figures;
  const listings = KINDS.map((kind) => {
    const listing = toListingSnapshot(kind, summaries[kind]);
    return [
      kind,
      kind === 'prompt' && errors.length > 0 ? { ...listing, errors } : listing,
    ] as const;
  });
  return { project, configuredAt, health, listings: new Map(listings) };
}

/**
 * The figures of the projects that this process polls, as their last commits left them: a scrape reads no table. A snapshot of a
 * project is made once for each change.
 */
export class Figures {
  #projects = new Map<string, { readonly figures: ProjectFigures; snapshot?: ProjectSnapshot }>();

  /** Makes these the projects. Those that are new here need their figures; others keep theirs. */
  configure(ids: readonly string[], added: ReadonlyMap<string, ProjectFigures>): void {
    const before = this.#projects;
    this.#projects = new Map();
    for (const id of ids.toSorted((one, other) => Buffer.from(one).compare(Buffer.from(other)))) {
      const figures = added.get(id);
      const known = figures === undefined ? before.get(id) : { figures };
      if (known !== undefined) this.#projects.set(id, known);
    }
  }

  has(project: string): boolean {
    return this.#projects.has(project);
  }

  healthOf(project: string): PollHealth | undefined {
    return this.#projects.get(project)?.figures.health;
  }

  /** Changes the figures of a project, if it is one of these. */
  change(project: string, next: Partial<ProjectFigures>): void {
    const known = this.#projects.get(project);
    if (known !== undefined)
      this.#projects.set(project, { figures: { ...known.figures, ...next } });
  }

  /** Changes the failures with some error_ids; undefined for those that are counted no longer. */
  changeErrors(project: string, totals: ReadonlyMap<string, ErrorTotal | undefined>): void {
    const errors = this.#projects.get(project)?.figures.errors ?? [];
    const next = [
      ...errors.filter(({ label }) => !totals.has(label)),
      ...totals.values().filter((total) => total !== undefined),
    ];
    this.change(project, {
      errors: next.toSorted((one, other) => (one.label < other.label ? -1 : 1)),
    });
  }

  /** Returns the snapshots of all projects in the order of their ids, or of one. */
  snapshots(only?: string): readonly ProjectSnapshot[] {
    const projects = only === undefined ? [...this.#projects.keys()] : [only];
    return projects.flatMap((project) => {
      const known = this.#projects.get(project);
      return known === undefined
        ? []
        : (known.snapshot ??= toProjectSnapshot(project, known.figures));
    });
  }
}

import { isDeepStrictEqual } from 'node:util';
import type { ErrorTotal } from '../domain/failure.ts';
import type { Kind } from '../domain/status.ts';
import type { Summary } from '../domain/summary.ts';
import type { PollHealth, ProjectFigures, ProjectSnapshot } from '../monitor/ports/store.ts';
import { toListingSnapshot } from './rows.ts';

/**
 * The figures of the projects that this process polls, as their last commits left them: a scrape reads no table, and makes
 * nothing anew. A snapshot never changes once it is returned.
 */
export class Figures {
  #projects = new Map<string, ProjectFigures>();

  /** Drops other projects than these. */
  keep(ids: readonly string[]): void {
    const kept = new Set(ids);
    for (const id of this.#projects.keys()) if (!kept.has(id)) this.#projects.delete(id);
  }

  /** Puts the projects in the order of their ids, as a reader of the store has them. */
  sort(): void {
    const ids = Array.from(this.#projects.keys(), (id) => Buffer.from(id));
    const known = this.#projects;
    this.#projects = new Map();
    for (const id of ids.toSorted((one, other) => one.compare(other)).map(String))
      this.set(id, known.get(id));
  }

  /** Sets the figures of a project; undefined for one that this process no longer polls. */
  set(project: string, figures: ProjectFigures | undefined): void {
    if (figures === undefined) this.#projects.delete(project);
    else this.#projects.set(project, figures);
  }

  has(project: string): boolean {
    return this.#projects.has(project);
  }

  /** Returns the summaries of a project as of its last commit; undefined if it is not one of these. */
  summaries(project: string): ProjectFigures['summaries'] | undefined {
    return this.#projects.get(project)?.summaries;
  }

  /** Whether the prompts of the project are idle; false while that is not known. */
  isIdle(project: string): boolean {
    return this.snapshot(project)?.listings.get('prompt')?.isIdle === true;
  }

  /** Changes the health of a project, if it is one of these, and its listings that have another summary. */
  change(
    project: string,
    health: PollHealth,
    changed: ReadonlyMap<Kind, Summary> = new Map(),
  ): void {
    const known = this.#projects.get(project);
    if (known === undefined) return;
    const listings = new Map(known.snapshot.listings);
    for (const [kind, summary] of changed) {
      const errors = listings.get(kind)?.errors ?? [];
      listings.set(kind, { ...toListingSnapshot(kind, summary), errors });
    }
    const snapshot = { ...known.snapshot, health, listings };
    const summaries =
      changed.size === 0 ? known.summaries : { ...known.summaries, ...Object.fromEntries(changed) };
    this.#projects.set(project, { snapshot, summaries });
  }

  /** The failures of a project with each error_id. The list is another one after each change. */
  errors(project: string): readonly ErrorTotal[] {
    return this.#projects.get(project)?.snapshot.listings.get('prompt')?.errors ?? [];
  }

  /** Changes the failures with one error_id; undefined if they are counted no longer. */
  changeError(project: string, changed: string, total: ErrorTotal | undefined): void {
    const others = this.errors(project).filter(({ label }) => label !== changed);
    this.setErrors(project, total === undefined ? others : [...others, total]);
  }

  /** Sets the failures with each error_id. */
  setErrors(project: string, totals: readonly ErrorTotal[]): void {
    const known = this.#projects.get(project);
    const prompts = known?.snapshot.listings.get('prompt');
    if (known === undefined || prompts === undefined) return;
    const errors = totals.toSorted((one, other) => (one.label < other.label ? -1 : 1));
    if (isDeepStrictEqual(errors, prompts.errors)) return;
    const listings = new Map(known.snapshot.listings).set('prompt', { ...prompts, errors });
    this.#projects.set(project, { ...known, snapshot: { ...known.snapshot, listings } });
  }

  /** Returns the snapshot of a project; undefined if it is not one of these. */
  snapshot(project: string): ProjectSnapshot | undefined {
    return this.#projects.get(project)?.snapshot;
  }

  /** Returns the snapshots of all projects, or of one. */
  snapshots(only?: string): readonly ProjectSnapshot[] {
    if (only === undefined) return Array.from(this.#projects.values(), ({ snapshot }) => snapshot);
    const figures = this.#projects.get(only);
    return figures === undefined ? [] : [figures.snapshot];
  }
}

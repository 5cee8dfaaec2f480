import type { ErrorTotal } from '../domain/failure.ts';
import type { Kind } from '../domain/status.ts';
import type { Summary } from '../domain/summary.ts';
import type { PollHealth, ProjectSnapshot } from '../monitor/ports/store.ts';
import { toListingSnapshot } from './rows.ts';

/**
 * The snapshots of the projects that this process polls, as their last commits left them: a scrape reads no table, and makes
 * nothing anew. A snapshot never changes once it is returned.
 */
export class Figures {
  #projects = new Map<string, ProjectSnapshot>();

  /** Makes these the projects. `added` has those that are new here, or new again; the others stay as they are. */
  configure(ids: readonly string[], added: readonly ProjectSnapshot[]): void {
    const known = new Map(this.#projects);
    for (const snapshot of added) known.set(snapshot.project, snapshot);
    const inOrder = ids.toSorted((one, other) => Buffer.from(one).compare(Buffer.from(other)));
    this.#projects = new Map();
    for (const id of inOrder) {
      const snapshot = known.get(id);
      if (snapshot !== undefined) this.#projects.set(id, snapshot);
    }
  }

  has(project: string): boolean {
    return this.#projects.has(project);
  }

  /** Changes the health of a project, if it is one of these, and its listings that have another summary. */
  change(
    project: string,
    health: PollHealth,
    summaries: ReadonlyMap<Kind, Summary> = new Map(),
  ): void {
    const known = this.#projects.get(project);
    if (known === undefined) return;
    const listings = new Map(known.listings);
    for (const [kind, summary] of summaries) {
      const errors = known.listings.get(kind)?.errors ?? [];
      listings.set(kind, { ...toListingSnapshot(kind, summary), errors });
    }
    this.#projects.set(project, { ...known, health, listings });
  }

  /** Changes the failures with some error_ids; undefined for those that are counted no longer. */
  changeErrors(project: string, totals: ReadonlyMap<string, ErrorTotal | undefined>): void {
    const known = this.#projects.get(project);
    const prompts = known?.listings.get('prompt');
    if (known === undefined || prompts === undefined) return;
    const errors = [
      ...prompts.errors.filter(({ label }) => !totals.has(label)),
      ...totals.values().filter((total) => total !== undefined),
    ].toSorted((one, other) => (one.label < other.label ? -1 : 1));
    const listings = new Map(known.listings).set('prompt', { ...prompts, errors });
    this.#projects.set(project, { ...known, listings });
  }

  /** Returns the snapshots of all projects in the order of their ids, or of one. */
  snapshots(only?: string): readonly ProjectSnapshot[] {
    if (only === undefined) return [...this.#projects.values()];
    const snapshot = this.#projects.get(only);
    return snapshot === undefined ? [] : [snapshot];
  }
}

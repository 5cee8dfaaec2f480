import type { ServedListing } from '../answer.ts';
import type { ItemStatus } from './listings.ts';
import type { Kind } from './records.ts';

/** A listing that was sent completely, so that the client may have read it. */
export interface JournalEntry {
  /** Counts from 1, in the order in which the answers ended. */
  readonly seq: number;
  readonly project: string;
  readonly kind: Kind;
  /** When the body was created, epoch ms. */
  readonly producedAt: number;
  /** When the operating system accepted the last byte, epoch ms. */
  readonly finishedAt: number;
  /** Whether the answer was a 304. */
  readonly unchanged: boolean;
  /** In the order of the body, duplicates and unusable items included. */
  readonly items: readonly ItemStatus[];
}

export interface Journal {
  readonly entries: readonly JournalEntry[];
  record(
    listing: ServedListing,
    times: { readonly producedAt: number; readonly finishedAt: number },
    unchanged: boolean,
  ): void;
}

/** Older entries are removed, so that a simulation can run for weeks. */
const MAX_KEPT = 100_000;

/**
 * @param keep true keeps the last 100,000 entries or more, which share equal items; a function receives each entry instead
 */
export function createJournal(keep: boolean | ((entry: JournalEntry) => void)): Journal {
  const entries: JournalEntry[] = [];
  const lastItems = new Map<string, readonly ItemStatus[]>();
  let seq = 0;
  return {
    entries,
    record({ project, kind, items: served }, { producedAt, finishedAt }, unchanged) {
      const items = served ?? lastItems.get(`${kind} ${project}`);
      if (keep === false || items === undefined) return;
      lastItems.set(`${kind} ${project}`, items);
      seq += 1;
      const entry = { seq, project, kind, producedAt, finishedAt, unchanged, items };
      if (keep === true) entries.push(entry);
      else keep(entry);
      if (entries.length > 2 * MAX_KEPT) entries.splice(0, MAX_KEPT);
    },
  };
}

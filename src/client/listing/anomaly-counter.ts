import { hash, randomBytes } from 'node:crypto';
import { ANOMALY_REASONS, type AnomalyReason, type AnomalySummary } from '../../domain/record.ts';

const MAX_INDEXES = 10;
/** Number of 32-bit words in a digest. */
const DIGEST_WORDS = 4;
/** Random, so that a service cannot construct different anomalies with equal digests. */
const SEED = randomBytes(32).toString('hex');

/** Counts the anomalies of one listing in constant memory. */
export interface AnomalyCounter {
  /** `identity` is equal for the same anomaly in two polls. */
  add(reason: AnomalyReason, index: number, identity: string): void;
  /** Returns one summary for each reason that occurred. */
  summaries(): readonly AnomalySummary[];
}

interface Group {
  count: number;
  readonly indexes: number[];
  readonly words: Uint32Array;
}

export function createAnomalyCounter(): AnomalyCounter {
  const groups = new Map<AnomalyReason, Group>();
  let last: { readonly identity: string; readonly words: Uint32Array } | undefined;

  function add(reason: AnomalyReason, index: number, identity: string): void {
    let group = groups.get(reason);
    if (group === undefined) {
      group = { count: 0, indexes: [], words: new Uint32Array(DIGEST_WORDS) };
      groups.set(reason, group);
    }
    group.count += 1;
    if (group.indexes.length < MAX_INDEXES) group.indexes.push(index);
    if (identity !== last?.identity) last = { identity, words: wordsOf(identity) };
    // A sum does not depend on the order, and unlike XOR it keeps what occurs twice.
    const { words } = group;
    for (const [place, word] of last.words.entries()) words[place] = (words[place] ?? 0) + word;
  }

  return {
    add,
    summaries: () =>
      ANOMALY_REASONS.flatMap((reason) => {
        const group = groups.get(reason);
        if (group === undefined) return [];
        const { count, indexes, words } = group;
        return [{ reason, count, indexes, digest: words.join() }];
      }),
  };
}

function wordsOf(identity: string): Uint32Array {
  const bytes = Uint8Array.from(hash('sha256', SEED + identity, 'buffer'));
  return new Uint32Array(bytes.buffer, 0, DIGEST_WORDS);
}

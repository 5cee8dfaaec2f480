import { createHash } from 'node:crypto';

/**
 * The projects that this process configured last. The database can have others: another process configured them later, a
 * failover lost the change, or an earlier change arrived late.
 */
export interface LastConfiguration {
  /** Their ids, encoded (sql/text.ts); undefined before the first change. */
  ids(): readonly string[] | undefined;
  set(ids: readonly string[]): void;
  /** Whether the stored digest is that of these projects; true before the first change. */
  isStored(digest: string): boolean;
}

export function createLastConfiguration(): LastConfiguration {
  let last: { readonly ids: readonly string[]; readonly digest: string } | undefined;
  return {
    ids: () => last?.ids,
    set: (ids) => {
      last = { ids, digest: digestOf(ids) };
    },
    isStored: (digest) => last === undefined || last.digest === digest,
  };
}

/** Digest of the ids in any order. */
export function digestOf(ids: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(ids.toSorted())).digest('hex').slice(0, 16);
}

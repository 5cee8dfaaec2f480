import type { KnownListing } from '../../../domain/record.ts';
import type { Kind } from '../../../domain/status.ts';
import type { Summary } from '../../../domain/summary.ts';
import type { LabelColumns } from '../../labels.ts';
import { type RecordColumns, toKnownRecord } from '../../rows.ts';
import { builtStatement, type Statement } from '../database.ts';

/** Restricts a kind to these record ids; kinds without an entry are loaded whole. */
export type OnlyThese = ReadonlyMap<Kind, readonly string[]>;

export interface KnownRow {
  readonly token: string;
  readonly summaries: Readonly<Record<Kind, Summary>>;
  readonly records: Readonly<Partial<Record<Kind, readonly RecordColumns[] | null>>>;
  /** Those of the records. */
  readonly labels: readonly LabelColumns[] | null;
}

/** Builds the query of `Store.loadKnown`, which reads everything at one moment. */
export function knownQuery(
  project: string,
  kinds: readonly Kind[],
  only: OnlyThese,
): { readonly statement: Statement; readonly values: readonly unknown[] } {
  const values: unknown[] = [project];
  for (const kind of kinds) {
    const ids = only.get(kind);
    if (ids !== undefined) values.push(JSON.stringify(ids));
  }
  const names = kinds.map((kind) => (only.has(kind) ? `some_${kind}` : kind));
  const statement = builtStatement(`known_${names.join('_')}`, () => textOf(kinds, only));
  return { statement, values };
}

/** Builds the text of `knownQuery`. Its parameters are the project and the ids of each restricted kind, in this order. */
function textOf(kinds: readonly Kind[], only: OnlyThese): string {
  const restricted = kinds.filter((kind) => only.has(kind));
  // `OFFSET 0` makes the planner look each id up in the index. The ids come as JSON: the length of an array makes the server
  // plan anew, which took longer than the rest.
  const found = restricted.map(
    (kind, index) => `some_${kind} AS MATERIALIZED (
          SELECT r.* FROM evalwatch.project p
          CROSS JOIN json_array_elements_text($${index + 2}::json) AS wanted(id) CROSS JOIN LATERAL (
             SELECT * FROM evalwatch.record r
             WHERE r.project_key = p.project_key AND r.kind = '${kind}' AND r.id = wanted.id
             OFFSET 0) r
          WHERE p.id = $1)`,
  );
  const from = (kind: Kind) =>
    only.has(kind)
      ? `some_${kind} r`
      : `evalwatch.record r WHERE r.project_key = p.project_key AND r.kind = '${kind}'`;
  const records = kinds.map(
    (kind) => `'${kind}',
      (SELECT json_agg(json_build_array(r.id, r.status, r.status_raw, r.name, r.timestamp, r.since,
         r.missing, r.gone, r.experiment, r.dataset, r.metric))
       FROM ${from(kind)})`,
  );
  // The project can have many more, until they are pruned.
  const used = kinds.map(
    (kind) => `SELECT DISTINCT unnest(ARRAY[r.experiment, r.dataset, r.metric]) FROM ${from(kind)}`,
  );
  const labels = `(SELECT json_agg(json_build_array(l.label_id, l.text))
            FROM (${used.join(' UNION ALL ')}) AS used(label_id)
            CROSS JOIN LATERAL (SELECT * FROM evalwatch.label l WHERE l.label_id = used.label_id OFFSET 0) l)`;
  return `${found.length > 0 ? `WITH ${found.join(', ')}` : ''}
        SELECT p.token, json_build_object('prompt', p.prompts, 'dataset', p.datasets) AS summaries,
          json_build_object(${records.join(', ')}) AS records,
          ${kinds.length === 0 ? 'NULL' : labels} AS labels
        FROM evalwatch.project p WHERE p.id = $1`;
}

export function toListings(
  { summaries, records, labels }: KnownRow,
  kinds: readonly Kind[],
): ReadonlyMap<Kind, KnownListing> {
  const texts = new Map<number | null, string>(labels);
  return new Map(
    kinds.map((kind) => {
      const known = (records[kind] ?? []).map((row) => toKnownRecord(row, texts));
      const baselined = summaries[kind].baselined === true;
      return [kind, { baselined, records: new Map(known.map((record) => [record.id, record])) }];
    }),
  );
}

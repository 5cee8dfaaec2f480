import type { KnownListing, KnownRecord } from '../../../domain/record.ts';
import type { Kind } from '../../../domain/status.ts';
import type { KnownProject, ProjectFigures } from '../../../monitor/ports/store.ts';
import type { LabelColumns } from '../../labels.ts';
import { type RecordColumns, toKnownRecord, unknownProject } from '../../rows.ts';
import type { Connection } from '../connection.ts';
import { PART_ROWS } from './poll-rows.ts';

/** The next records of a listing: those after an id, or those with some ids. At most {@link PART_ROWS}. */
type Asked = { readonly kind: Kind } & (
  { readonly after: string } | { readonly ids: readonly string[] }
);

/** A project with some of its records. */
interface KnownPage {
  readonly token: string;
  /** Summaries in JSON. */
  readonly prompts: string;
  readonly datasets: string;
  /** For each listing asked for. */
  readonly rows: readonly (readonly RecordColumns[])[];
  /** Those of the rows. */
  readonly labels: readonly LabelColumns[];
}

/** Reads a page of known records, which needs little memory and time at once. */
export type ReadKnown = (project: string, asked: readonly Asked[]) => KnownPage;

export function createKnown(db: Connection): ReadKnown {
  const selectProject = db.prepare<
    [id: string],
    Omit<KnownPage, 'rows' | 'labels'> & { readonly project_key: number }
  >('SELECT project_key, token, prompts, datasets FROM project WHERE id = ?');
  const select = `SELECT id, status, status_raw, name, timestamp, since, missing, gone, experiment, dataset, metric
    FROM record WHERE project_key = ? AND kind = ?`;
  const selectAfter = db
    .prepare<[key: number, kind: Kind, id: string, max: number], RecordColumns>(
      `${select} AND id > ? ORDER BY id LIMIT ?`,
    )
    .raw();
  const selectRecord = db
    .prepare<[key: number, kind: Kind, id: string], RecordColumns>(`${select} AND id = ?`)
    .raw();
  const selectLabel = db
    .prepare<[label: number | null], LabelColumns>(
      'SELECT label_id, text FROM label WHERE label_id = ?',
    )
    .raw();
  return (project, asked) => {
    // Reads the token first: if another commit comes in between, it is too old and the commit of this poll is refused.
    const found = selectProject.get(project);
    if (found === undefined) throw unknownProject(project);
    const { project_key, ...known } = found;
    const rows = asked.map((each) =>
      'after' in each
        ? selectAfter.all(project_key, each.kind, each.after, PART_ROWS)
        : each.ids
            .map((id) => selectRecord.get(project_key, each.kind, id))
            .filter((row) => row !== undefined),
    );
    const used = new Set<number | null>();
    for (const [, , , , , , , , experiment, dataset, metric] of rows.flat()) {
      used.add(experiment).add(dataset).add(metric);
    }
    const labels = [...used].map((label) => selectLabel.get(label));
    return { ...known, rows, labels: labels.filter((label) => label !== undefined) };
  };
}

/** `Store.loadKnown`, page by page. A commit in between can show in the records; the project then has another token. */
export async function loadKnown(
  read: (...asked: Parameters<ReadKnown>) => Promise<KnownPage>,
  project: string,
  kinds: readonly Kind[],
  only: ReadonlyMap<Kind, readonly string[]> = new Map(),
): Promise<KnownProject> {
  const part = (kind: Kind, start: number, last: string): Asked => {
    const ids = only.get(kind);
    return ids === undefined
      ? { kind, after: last }
      : { kind, ids: ids.slice(start, start + PART_ROWS) };
  };
  const page = await read(
    project,
    kinds.map((kind) => part(kind, 0, '')),
  );
  const summaries = toSummaries(page.prompts, page.datasets);
  const listings = new Map<Kind, KnownListing>();
  const labels = new Map<number | null, string>(page.labels);
  for (const [index, kind] of kinds.entries()) {
    const records = new Map<string, KnownRecord>();
    listings.set(kind, { baselined: summaries[kind].baselined === true, records });
    let rows = page.rows[index] ?? [];
    for (let start = PART_ROWS; ; start += PART_ROWS) {
      for (const row of rows) records.set(row[0], toKnownRecord(row, labels));
      const wanted = only.get(kind)?.length;
      if (wanted === undefined ? rows.length < PART_ROWS : wanted <= start) break;
      const next = await read(project, [part(kind, start, rows.at(-1)?.[0] ?? '')]);
      [rows = []] = next.rows;
      for (const [label, text] of next.labels) labels.set(label, text);
    }
  }
  return { token: page.token, listings };
}

export function toSummaries(prompts: string, datasets: string): ProjectFigures['summaries'] {
  return { prompt: JSON.parse(prompts), dataset: JSON.parse(datasets) };
}

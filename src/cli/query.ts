import { quoteId } from '../config/redaction.ts';
import { closest, didYouMean } from '../config/suggest.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { RowQuery, StoreReader } from '../monitor/ports/store.ts';
import { openStoreReader } from '../store/open.ts';
import type { Action, Context } from './command.ts';
import { locateStore, type StorePlace } from './configuration.ts';
import { UsageError } from './outcome.ts';
import type { QueryOptions } from './options.ts';
import type { Csv } from './output/csv.ts';
import { jsonLines, tableLines, type Column } from './output/table.ts';

/** Maximum number of known projects in the message about an unknown one. */
const MAX_LISTED = 10;

/** An open store, and which projects are configured for it. */
export interface Source extends StorePlace {
  readonly reader: StoreReader;
  readonly clock: Clock;
}

/** Rows that a reading command prints, and their format. */
export interface View<Row> {
  /** Name of the rows in the plural, for the message that there are none. */
  readonly noun: string;
  /** Returns the function that reads rows; it may keep what it needs again at the next read. */
  readonly open: (source: Source) => (query: RowQuery) => Promise<readonly Row[]>;
  readonly columns: readonly Column<Row>[];
  /** Returns the row of the JSON document (docs/specification.md#rows). */
  readonly toJson: (row: Row) => object;
  /** Undefined for a command without `--format csv`. */
  readonly csv?: Csv<Row>;
}

/** Creates a command that reads rows of the store and prints them. A daemon may run meanwhile. */
export function queryAction<Row>(view: View<Row>): Action<QueryOptions> {
  return async (options, context) => {
    const query = toQuery(options, context);
    const rows = await withReader(options, context, (source) => view.open(source)(query));
    if (options.json) {
      await context.stdout.writeLines(jsonLines(rows, view.toJson));
    } else if (view.csv !== undefined && options.format === 'csv') {
      await context.stdout.write(view.csv.header);
      await context.stdout.writeAll(rows.values().map(view.csv.line));
    } else if (rows.length > 0) {
      await context.stdout.writeLines(tableLines(rows, view.columns, context.stdout));
    } else {
      context.warn(`no ${view.noun} ${isFiltered(options) ? 'match' : 'recorded'}`);
    }
    return 0;
  };
}

export function toQuery(options: Omit<QueryOptions, 'format'>, { clock }: Context): RowQuery {
  const { project, status, cause, since, limit } = options;
  const start = since === undefined ? undefined : clock.now() - since;
  return { project, status, cause, since: start, limit };
}

/**
 * Runs `work` with a reader of the store. A daemon may run meanwhile.
 * @throws {UsageError} for an unknown project
 */
export async function withReader<Result>(
  options: Pick<QueryOptions, 'config' | 'store' | 'project'>,
  context: Context,
  work: (source: Source) => Promise<Result>,
): Promise<Result> {
  const { store, projects } = await locateStore(options, context);
  const reader = await openStoreReader(store, context.clock, (version) =>
    context.warn(
      `note: the store has schema version ${version}, which is earlier than that of this evalwatch; a copy of it as of now is read`,
    ),
  );
  try {
    const { project } = options;
    if (project !== undefined) assertKnownProject(project, projects, await reader.projects());
    return await work({ reader, store, projects, clock: context.clock });
  } finally {
    await reader.close();
  }
}

/** @throws {UsageError} for a project that is neither in the configuration nor in the store */
export function assertKnownProject(
  project: string,
  configured: readonly { readonly id: string }[],
  stored: readonly string[],
): void {
  const known = [...new Set([...configured.map(({ id }) => id), ...stored])];
  if (known.includes(project)) return;
  const suggestion = didYouMean(closest(project, known)) || `; ${listProjects(known)}`;
  throw new UsageError(`unknown project ${quoteId(project)}${suggestion}`);
}

function listProjects(projects: readonly string[]): string {
  const more = projects.length - MAX_LISTED;
  const first = projects.slice(0, MAX_LISTED).map(quoteId).join(', ');
  return `known projects are ${first}${more > 0 ? ` and ${more} more` : ''}`;
}

function isFiltered({ project, status, cause, since }: QueryOptions): boolean {
  return [project, status, cause, since].some((filter) => filter !== undefined);
}

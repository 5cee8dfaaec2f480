import { createModelServer } from '../model/server.ts';
import type { StatementServer } from './statement-server.ts';
import { connectRealServer } from './real-server.ts';

/** Columns in which the model may differ from a real server. */
const OWN_COLUMNS: ReadonlySet<string> = new Set([
  'bytes',
  'is_counted',
  'server_started_at',
  'server_version',
]);
/** The stamp of a project, which ends with a hash of its totals. */
const STAMP = /^(\d+\.\d+)(?:\.-?\d+)?$/;

/**
 * Connects to a real server, with the model beside it. Both execute each statement, and must return equal rows in any order.
 * @param fault called with each difference
 */
export async function connectHeldServer(
  source: string,
  url: string,
  fault: (text: string) => void,
): Promise<StatementServer> {
  const real = await connectRealServer(source, url);
  const model = await createModelServer(source);

  /** Executes a statement. Returns its rows or its error. */
  async function tryRun(server: StatementServer, ...asked: Parameters<StatementServer['run']>) {
    try {
      return { rows: await server.run(...asked) };
    } catch (error) {
      return { error };
    }
  }

  return {
    ...real,
    run: async (text, values, nowUs) => {
      const [made, modelled] = [
        await tryRun(real, text, values, nowUs),
        await tryRun(model, text, values, nowUs),
      ];
      const [expected, found] = [toComparable(made), toComparable(modelled)];
      if (expected !== found) {
        const asked = `${text} with ${JSON.stringify(values)}`;
        fault(`the model answers ${found} instead of ${expected} to ${asked}`);
      }
      if (made.rows === undefined) throw made.error;
      return made.rows;
    },
  };
}

function toComparable({
  rows,
  error,
}: {
  readonly rows?: readonly unknown[];
  readonly error?: unknown;
}) {
  if (rows !== undefined) return JSON.stringify(canonical(rows));
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

/** Returns rows in a fixed order, without what cannot be compared. */
function canonical(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(STAMP, '$1');
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map(canonical);
    if (items.some((item) => typeof item !== 'object')) return items;
    return items.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
  }
  const columns = Object.entries(value).filter(([name]) => !OWN_COLUMNS.has(name));
  const sorted = columns.toSorted(([one], [other]) => (one < other ? -1 : 1));
  return sorted.map(([name, column]) => [name, canonical(column)]);
}

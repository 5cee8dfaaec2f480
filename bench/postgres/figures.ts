import type { PostgresServer } from '../../test/support/postgres-server.ts';
import { cpuMsOf } from './server-cpu.ts';

export interface ServerCounters {
  /** CPU time of all server processes, ms. */
  readonly cpu: number;
  /** Bytes of write-ahead log. */
  readonly wal: number;
  /** Updated rows of `project`. */
  readonly updates: number;
  readonly hot: number;
}

/** Reads the counters of a server. */
export async function serverCounters(
  server: PostgresServer,
  database: string,
): Promise<ServerCounters> {
  const [row] = await server.query(
    database,
    `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal, n_tup_upd::float8 AS updates,
       n_tup_hot_upd::float8 AS hot
     FROM pg_stat_user_tables WHERE relid = 'evalwatch.project'::regclass`,
  );
  return {
    cpu: cpuMsOf(server.pid()),
    wal: Number(row?.['wal']),
    updates: Number(row?.['updates']),
    hot: Number(row?.['hot']),
  };
}

/** Prints the cost of a poll for the server, beside its bounds if `isBound`. */
export function reportPolls(
  before: ServerCounters,
  after: ServerCounters,
  polls: number,
  isBound: boolean,
): void {
  const hot = (100 * (after.hot - before.hot)) / (after.updates - before.updates);
  const bound = (limit: Bound) => (isBound ? limit : {});
  report('CPU of PostgreSQL a poll', 'ms', (after.cpu - before.cpu) / polls, bound({ most: 0.15 }));
  report('write-ahead log a poll', 'B', (after.wal - before.wal) / polls, bound({ most: 400 }));
  report('updates of projects that are HOT', '%', hot, bound({ least: 95 }));
}

interface Bound {
  readonly most?: number;
  readonly least?: number;
}

/** Prints a figure beside its bound. Sets exit code 1 if it misses the bound. */
export function report(what: string, unit: string, figure: number, bound: Bound = {}): void {
  const { most = Infinity, least = -Infinity } = bound;
  const isKept = figure >= least && figure <= most;
  const beside = [
    ...(bound.most === undefined ? [] : [`at most ${bound.most}`]),
    ...(bound.least === undefined ? [] : [`at least ${bound.least}`]),
    ...(isKept ? [] : ['MISSED']),
  ].join(' ');
  console.log(`${what.padEnd(44)} ${figure.toFixed(2).padStart(8)} ${unit.padEnd(3)} ${beside}`);
  if (!isKept) process.exitCode = 1;
}

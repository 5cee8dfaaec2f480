import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import Database from 'better-sqlite3';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly node: string;
  readonly sqlite: string;
  /** Load average of the minute before the start. */
  readonly load: number;
}

export function thisMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    kernel: release(),
    node: process.versions.node,
    sqlite: sqliteVersion(),
    load: loadavg()[0] ?? 0,
  };
}

function sqliteVersion(): string {
  const db = new Database(':memory:');
  const version = String(db.prepare('SELECT sqlite_version()').pluck().get());
  db.close();
  return version;
}

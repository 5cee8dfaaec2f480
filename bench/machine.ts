import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import Database from 'better-sqlite3';

/** Where and with what it was measured. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly node: string;
  readonly sqlite: string;
  /** Processes that wanted to run, others' too, just before. */
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

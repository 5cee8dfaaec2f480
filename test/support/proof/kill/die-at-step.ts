/**
 * Loaded before a program (`node --import`): ends the process by SIGKILL at the n-th pass of a step, both named by the
 * environment. It watches what the program does to its libraries, from outside.
 */
import { subscribe } from 'node:diagnostics_channel';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import Database from 'better-sqlite3';
import type { Step } from './steps.ts';

const step = process.env['DIE_AT_STEP'];
let left = Number(process.env['DIE_AT_PASS']);

function pass(name: Step): void {
  if (name !== step) return;
  left -= 1;
  if (left === 0) process.kill(process.pid, 'SIGKILL');
}

subscribe('undici:request:create', () => pass('fetch: before'));
subscribe('undici:client:sendHeaders', () => pass('fetch: sent'));
subscribe('undici:request:headers', () => pass('fetch: answered'));
subscribe('undici:request:trailers', () => pass('fetch: after'));

interface Statement {
  readonly source: string;
  run(...parameters: unknown[]): unknown;
}

let settling = false;
/** What was committed has not been told yet. */
let untold = false;

function watchSql(sql: string, work: () => unknown): unknown {
  const begins = sql.startsWith('BEGIN');
  const commits = sql === 'COMMIT';
  const settles = /^UPDATE failure\s+SET settled_at/.test(sql);
  if (begins) pass('begin: before');
  if (commits) pass('commit: before');
  if (settles) pass('settle: before');
  const result = work();
  if (begins) pass('begin: after');
  if (settles) pass('settle: after');
  if (commits) {
    untold = !settling;
    pass('commit: after');
    if (settling) pass('settle: committed');
  }
  settling = settles || (settling && !commits);
  return result;
}

const database = new Database(':memory:');
const statements = Object.getPrototypeOf(database.prepare('SELECT 1')) as Statement;
// oxlint-disable-next-line typescript/unbound-method -- called with its own `this`
const { run } = statements;
statements.run = function watched(...parameters) {
  return watchSql(this.source, () => run.apply(this, parameters));
};
// oxlint-disable-next-line typescript/unbound-method -- called with its own `this`
const { exec } = Database.prototype;
Database.prototype.exec = function watched(sql) {
  watchSql(sql, () => exec.call(this, sql));
  return this;
};
database.close();

const { writeSync } = fs;
const write = writeSync as (fd: number, bytes: Uint8Array) => number;

function watchLine(fd: number, bytes: Uint8Array): number {
  const isFailure = Buffer.from(bytes).includes('"event":"prompt.failed"');
  if (untold) pass('emit');
  untold = false;
  for (const kind of isFailure ? (['line', 'failure line'] as const) : (['line'] as const)) {
    pass(`${kind}: before`);
    if (step === `${kind}: half` && left === 1) write(fd, bytes.subarray(0, bytes.length / 2));
    pass(`${kind}: half`);
  }
  const written = write(fd, bytes);
  pass('line: after');
  if (isFailure) pass('failure line: after');
  return written;
}

fs.writeSync = ((fd: number, bytes: Uint8Array) =>
  fd === 1 ? watchLine(fd, bytes) : write(fd, bytes)) as typeof writeSync;
syncBuiltinESMExports();

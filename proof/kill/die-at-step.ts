/**
 * Loaded before a program (`node --import`): ends the process by SIGKILL at the n-th pass of a step, both set in the
 * environment. It intercepts the program's calls of its libraries, in each of its threads.
 */
import { subscribe } from 'node:diagnostics_channel';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import type { Answer, NumberedRequest } from '../../src/store/sqlite/thread/thread-messages.ts';
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
  get(...parameters: unknown[]): unknown;
}

let settling = false;

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
    pass('commit: after');
    if (settling) pass('settle: committed');
  }
  settling = settles || (settling && !commits);
  return result;
}

const database = new Database(':memory:');
const statements = Object.getPrototypeOf(database.prepare('SELECT 1')) as Statement;
for (const method of ['run', 'get'] as const) {
  const call = statements[method];
  statements[method] = function watched(...parameters) {
    return watchSql(this.source, () => call.apply(this, parameters));
  };
}
// oxlint-disable-next-line typescript/unbound-method -- called with its own `this`
const { exec } = Database.prototype;
Database.prototype.exec = function watched(sql) {
  watchSql(sql, () => exec.call(this, sql));
  return this;
};
database.close();

/** Whether a commit is not emitted yet. The main thread emits, and the store works in a thread of its own. */
let untold = false;
const polls = new Set<number>();
// oxlint-disable-next-line typescript/unbound-method -- called with their own `this`
const { postMessage, emit } = Worker.prototype;
Worker.prototype.postMessage = function watched(this: Worker, asked: NumberedRequest) {
  const { number, request } = asked;
  if (typeof request === 'object' && 'write' in request && request.place.ends) {
    if (request.write.some(({ method }) => method === 'commitPoll')) polls.add(number);
  }
  postMessage.call(this, asked);
};
Worker.prototype.emit = function watched(this: Worker, name: string, ...values: unknown[]) {
  if (name === 'message' && polls.delete((values[0] as Answer).number)) untold = true;
  return emit.call(this, name, ...values);
} as typeof emit;

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

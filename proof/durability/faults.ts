import { existsSync } from 'node:fs';
import { copyFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import Database from 'better-sqlite3';
import type * as Migrate from '../../src/store/sqlite/sql/migrate.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { copyWithBug } from '../bug.ts';
import { type Figures, SOURCE } from '../row.ts';
import { Disk } from './disk.ts';
import {
  dump,
  findFault,
  type Promised,
  promisedAfter,
  readContent,
  withoutExperiments,
} from './judge.ts';
import { CALLS, toSteps, workloadOn } from './traced.ts';

export interface FaultOptions {
  readonly strace: string;
  /** Directory of the sources under test. */
  readonly source: string;
  readonly short: boolean;
  readonly random: () => number;
  readonly print: (line: string) => void;
}

const SUFFIXES = ['', '-wal', '-shm', '-journal', '.lock', '.lock-journal'];

/** Shares of unsynced changes that survive a power cut; one is drawn for each image. */
const KEPT = [0, 0.03, 0.5, 0.97, 1];
/** Share of the images that are cut while the store is created, which is short and delicate. */
const AT_THE_START = 0.15;

/** Cuts the power at random steps of two daemons, one after the other: each image must keep what was promised. */
export async function cutPower({
  strace,
  source,
  short,
  random,
  print,
}: FaultOptions): Promise<Figures> {
  const [rounds, images] = short ? [60, 150] : [320, 4000];
  const workload = workloadOn(strace, source);
  await using directory = await temporaryDirectory();
  const path = join(directory.path, 'store.db');
  const calls = [
    ...workload.record(path, [0, rounds / 2]),
    ...workload.record(path, [rounds / 2, rounds]),
  ];
  const steps = toSteps(calls, path);
  const promised = promisedAfter(
    steps.flatMap((step) => (step.type === 'tell' ? [step.line] : [])),
  );
  const created = steps.findIndex(({ type }) => type === 'tell');
  const cuts = Array.from({ length: images }, () =>
    Math.floor(random() * (random() < AT_THE_START ? created : steps.length)),
  ).toSorted((a, b) => a - b);

  const disk = new Disk();
  const wrong: string[] = [];
  let at = -1;
  let told = 0;
  for (const [index, cut] of cuts.entries()) {
    for (; at < cut; at += 1) {
      const step = steps[at + 1];
      if (step === undefined) break;
      disk.apply(step);
      if (step.type === 'tell') told += 1;
    }
    const kept = KEPT[Math.floor(random() * KEPT.length)] ?? 0;
    for (const suffix of SUFFIXES) await rm(path + suffix, { force: true });
    for (const [name, content] of disk.cut(() => random() < kept)) {
      await writeFile(join(directory.path, name), content);
    }
    // With or without the call that the cut interrupts.
    const fault = await judged(source, path, promised.slice(told, told + 2));
    if (fault !== undefined) wrong.push(fault);
    if (index % 1000 === 999) print(`${index + 1} power cuts`);
  }
  if (wrong.length > 0) {
    const kinds = Map.groupBy(wrong, (fault) => fault.replace(/:.*/s, ''));
    const texts = [...kinds].map(([, faults]) => `${faults.length} times ${faults[0]}`);
    throw new Error(`${wrong.length} of ${images} power cuts: ${texts.join('; ')}`);
  }
  const transitions = promised.at(-1)?.transitions.length;
  return [['power cuts', `${images}, in ${steps.length} steps and ${transitions} transitions`]];
}

/** Numbers of calls that fail in a row: one, or enough for retries to fail too. */
const TIMES = [1, 4];
const ROUNDS = 12;
const SAMPLES = 3;

/** Lets each call that touches the disk fail: the store must say so, and lose nothing when the call is repeated. */
export async function failCalls({
  strace,
  source,
  short,
  random,
  print,
}: FaultOptions): Promise<Figures> {
  const workload = workloadOn(strace, source);
  const undisturbed = await inDirectory((path) => workload.trace(path, [0, ROUNDS]));
  const faults = CALLS.flatMap((call) => {
    const count = undisturbed.calls.filter((line) => line.startsWith(`${call}(`)).length;
    const errors = call === 'pwrite64' ? ['EIO', 'ENOSPC'] : ['EIO'];
    return errors.flatMap((error) => {
      const each = Array.from({ length: count }, (_, n) => {
        const times = TIMES[n % TIMES.length] ?? 1;
        return `${call}:error=${error}:when=${n + 1}..${n + times}`;
      });
      return short ? sample(each, SAMPLES, random) : each;
    });
  });
  let repeated = 0;
  for (const [index, fault] of faults.entries()) {
    await inDirectory(async (path) => {
      const wrong = (what: string) => new Error(`${fault}: ${what}`);
      const disturbed = workload.trace(path, [0, ROUNDS], fault).lines;
      // A failed opening must not harm the next one.
      const lines = disturbed.length > 0 ? disturbed : workload.play(path, [0, ROUNDS]);
      const end = lines.at(-1);
      if (end?.what !== 'ended') throw wrong('the workload did not end');
      const found = await judged(source, path, promisedAfter(lines).slice(-1));
      if (found !== undefined) throw wrong(found);
      const told = (all: typeof lines) => all.filter(({ what }) => what !== 'ended');
      if (!isDeepStrictEqual(told(lines), told(undisturbed.lines))) {
        throw wrong('told other rows than without the fault');
      }
      if (end.failed !== end.emitted) {
        throw wrong(`${end.failed} calls failed, ${end.emitted} failures were emitted`);
      }
      repeated += end.failed;
    });
    if (index % 100 === 99) print(`${index + 1} failing calls`);
  }
  return [['failing calls', `${faults.length}, ${repeated} operations repeated`]];
}

/** Made-up next migration that updates rows, copies a table and replaces an index, which no shipped one does. */
const MADE_UP = `
ALTER TABLE transition ADD COLUMN note TEXT;
UPDATE transition SET note = from_status || ' to ' || to_status;
CREATE TABLE record_copy AS SELECT * FROM record;
DROP INDEX transition_at;
CREATE INDEX transition_when ON transition (at, project_key);
`;

async function withNextMigration() {
  const copy = await copyWithBug({
    file: 'store/sqlite/sql/migrate.ts',
    replace: [['\n] as const;', "\n  'made-up.sql',\n] as const;"]],
  });
  await writeFile(join(copy.source, 'store/sqlite/migrations/made-up.sql'), MADE_UP);
  return copy;
}

const UPGRADED_ROUNDS = 30;
/** The first schema with experiments. */
const EXPERIMENTS_SINCE = 9;
const KILLS = 3;

/**
 * Kills the upgrade from every earlier schema at each call that touches the disk: the store must be as it was, or some whole
 * migrations further. The next start must finish the upgrade, and the store then answers like one that never was older.
 */
export async function killUpgrades({
  strace,
  source: given,
  short,
  random,
  print,
}: FaultOptions): Promise<Figures> {
  await using next = given === SOURCE ? await withNextMigration() : undefined;
  const source = next?.source ?? given;
  const workload = workloadOn(strace, source);
  const { migrate, readMigrations } = (await import(
    join(source, 'store/sqlite/sql/migrate.ts')
  )) as typeof Migrate;
  const migrations = await readMigrations();
  await using directory = await temporaryDirectory();
  const newest = join(directory.path, 'newest.db');
  workload.play(newest, [0, UPGRADED_ROUNDS]);
  const expected = await readContent(source, newest);
  const end = [UPGRADED_ROUNDS, UPGRADED_ROUNDS] as const;
  let kills = 0;
  for (const from of migrations.keys()) {
    const [old, path, copy] = [`old-${from}.db`, `store-${from}.db`, `copy-${from}.db`].map(
      (name) => join(directory.path, name),
    ) as [string, string, string];
    edit(old, (db) => {
      migrate(db, migrations.slice(0, from));
      if (from > 0) fill(db, newest, from);
    });
    /** Contents after each whole number of migrations. */
    const wholes: unknown[] = [];
    for (let to = from; to <= migrations.length; to += 1) {
      await copyStore(old, path);
      edit(path, (db) => migrate(db, migrations.slice(0, to)));
      wholes.push(dump(path));
    }
    const wrong = (what: string) => new Error(`from schema ${from}${what}`);
    await copyStore(old, path);
    const { calls } = workload.trace(path, end);
    const after = await readContent(source, path);
    const compared = [after, expected].map((content) =>
      from < EXPERIMENTS_SINCE ? withoutExperiments(content) : content,
    );
    if (from > 0 && !isDeepStrictEqual(compared[0], compared[1])) {
      throw wrong(': it answers otherwise than a store that never was older');
    }
    const each = CALLS.flatMap((call) =>
      calls
        .filter((line) => line.startsWith(`${call}(`))
        .map((_, n) => `${call}:signal=KILL:when=${n + 1}`),
    );
    for (const kill of short ? sample(each, KILLS, random) : each) {
      await copyStore(old, path);
      workload.trace(path, end, kill);
      // Reading would end what the killed process has begun.
      await copyStore(path, copy);
      const left = dump(copy);
      if (!wholes.some((whole) => isDeepStrictEqual(left, whole))) {
        throw wrong(`, ${kill}: neither the old store nor a newer one`);
      }
      const finished = await readContent(source, path).catch((error: unknown) => String(error));
      if (!isDeepStrictEqual(finished, after)) {
        throw wrong(
          `, ${kill}: not upgraded by the next start: ${typeof finished === 'string' ? finished : 'other content'}`,
        );
      }
      kills += 1;
    }
    print(`upgrades from schema ${from} killed`);
  }
  return [['killed upgrades', `${kills}, to schema ${migrations.length}`]];
}

function edit(path: string, work: (db: Database.Database) => void): void {
  const db = new Database(path);
  work(db);
  db.close();
}

const LISTINGS = `(SELECT project_key, 'prompt' AS kind, prompts AS summary FROM newest.project
  UNION ALL SELECT project_key, 'dataset', datasets FROM newest.project)`;
const WITH_LISTING = "2 * project_key - (kind = 'prompt') AS listing_key, *";

/** The rows of tables before schema 7, in which each listing has a row and a key. */
const BEFORE_7: Readonly<Record<string, string>> = {
  project: 'SELECT *, 1 AS version FROM newest.project',
  listing: `SELECT ${WITH_LISTING}, summary ->> 'baselined' AS baselined, summary ->> 'gone' AS gone_total,
    summary ->> 'failedAt' AS last_failure_at FROM ${LISTINGS} WHERE summary <> '{}'`,
  record: `SELECT ${WITH_LISTING} FROM newest.record`,
  transition: `SELECT ${WITH_LISTING} FROM newest.transition`,
  transition_total: `SELECT ${WITH_LISTING}, t.value ->> 0 AS from_status, t.value ->> 1 AS to_status,
    t.value ->> 2 AS count FROM ${LISTINGS}, json_each(summary, '$.totals') t`,
  failure: 'SELECT 2 * project_key - 1 AS listing_key, * FROM newest.failure',
  prompt_duration: 'SELECT 2 * project_key - 1 AS listing_key, * FROM newest.prompt_duration',
  error_total: 'SELECT 2 * project_key - 1 AS listing_key, * FROM newest.error_total',
};

/** Fills a store of an earlier schema with the rows of the newest one, as far as it has their tables and columns. */
function fill(db: Database.Database, newest: string, schema: number): void {
  db.pragma('foreign_keys = OFF');
  db.prepare('ATTACH ? AS newest').run(newest);
  const tables = db
    .prepare<[], string>(
      "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )
    .pluck();
  for (const table of tables.all()) {
    const names = db
      .prepare<[string], string>(`SELECT name FROM pragma_table_info(?, 'main')`)
      .pluck()
      .all(table);
    const rows = schema < 7 ? BEFORE_7[table] : undefined;
    db.exec(
      `INSERT INTO main.${table} (${names.join()})
       SELECT ${names.join()} FROM (${rows ?? `SELECT * FROM newest.${table}`})`,
    );
  }
  db.exec('DETACH newest');
  db.pragma('journal_mode = WAL');
}

async function copyStore(from: string, to: string): Promise<void> {
  for (const suffix of SUFFIXES) {
    await rm(to + suffix, { force: true });
    if (existsSync(from + suffix)) await copyFile(from + suffix, to + suffix);
  }
}

async function inDirectory<Result>(
  work: (path: string) => Result | Promise<Result>,
): Promise<Result> {
  await using directory = await temporaryDirectory();
  return await work(join(directory.path, 'store.db'));
}

/** Opens and judges a store. Returns what is wrong. */
async function judged(
  source: string,
  path: string,
  promised: readonly Promised[],
): Promise<string | undefined> {
  try {
    return findFault(await readContent(source, path), promised);
  } catch (error) {
    return `damaged: ${String(error)}`;
  }
}

function sample<Item>(
  items: readonly Item[],
  count: number,
  random: () => number,
): readonly Item[] {
  const left = [...items];
  return Array.from({ length: Math.min(count, left.length) }).flatMap(() =>
    left.splice(Math.floor(random() * left.length), 1),
  );
}

import { spawnSync } from 'node:child_process';
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import Database from 'better-sqlite3';
import type * as Migrate from '../src/store/sqlite/sql/migrate.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { copyWithBug } from './bug.ts';
import { randomNumbers } from './random.ts';
import { type Figures, type Row, type RowOptions, SOURCE } from './row.ts';
import { callsOf, EVERY_THREAD, findStrace } from './strace.ts';
import { type Content, fill, lostValues, readContent } from './upgrade/content.ts';

const OPEN = fileURLToPath(new URL('upgrade/open.ts', import.meta.url));
/** Calls that change the disk: between two of them a statement changes memory only. */
const CALLS = ['pwrite64', 'fsync', 'ftruncate', 'unlink'] as const;
const SHORT_KILLS = 2;

/** Made-up migration that updates rows, copies a table and drops an index, which no shipped one does. */
const MADE_UP = `
ALTER TABLE transition ADD COLUMN note TEXT;
UPDATE transition SET note = from_status || ' to ' || to_status;
CREATE TABLE record_copy AS SELECT * FROM record;
DROP INDEX transition_at;
CREATE INDEX transition_when ON transition (at, listing_key);
`;

/**
 * Upgrades every earlier schema to the present one, killed at every call that touches the disk: the store must be as it was,
 * or some whole migrations further, and the next start must finish the upgrade with the same data.
 */
export const upgrade: Row = {
  name: 'upgrade',
  bug: {
    what: 'migrations without a transaction',
    file: 'store/sqlite/sql/migrate.ts',
    replace: [
      [
        'const run = createTransactions(db);',
        'const run = (_place: unknown, work: () => void) => work();',
      ],
    ],
    notice: /neither the old store nor a newer one/,
  },
  run: async (options) => {
    const strace = findStrace();
    const { source } = options;
    const shipped = await upgradeFromEach(strace, source ?? SOURCE, options);
    if (source !== undefined) return shipped;
    await using copy = await copyWithBug({
      file: 'store/sqlite/sql/migrate.ts',
      replace: [['\n] as const;', "\n  'made-up.sql',\n] as const;"]],
    });
    await writeFile(join(copy.source, 'store/sqlite/migrations/made-up.sql'), MADE_UP);
    const madeUp = await upgradeFromEach(strace, copy.source, options);
    return [
      ...shipped,
      ...madeUp.map(([figure, value]) => [`${figure}, with a made-up one`, value] as const),
    ];
  },
};

async function upgradeFromEach(
  strace: string,
  source: string,
  { short, seed, print }: RowOptions,
): Promise<Figures> {
  const { migrate, readMigrations } = (await import(
    join(source, 'store/sqlite/sql/migrate.ts')
  )) as typeof Migrate;
  const migrations = await readMigrations();
  const random = randomNumbers(seed);
  const figures: (readonly [string, string])[] = [];
  const last = migrations.length - 1;
  for (const from of short ? [0, last] : migrations.keys()) {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'store.db');
    const old = join(directory.path, 'old.db');
    makeStore(old, (db) => migrate(db, migrations.slice(0, from)), from);

    /** Contents after each whole number of migrations. */
    const wholes: Content[] = [];
    for (let to = from; to <= migrations.length; to += 1) {
      await copyFile(old, path);
      makeStore(path, (db) => migrate(db, migrations.slice(0, to)), undefined);
      wholes.push(readContent(path));
    }
    const [before, after] = [wholes[0], wholes.at(-1)];
    if (before === undefined || after === undefined) throw new Error('nothing to upgrade');
    const lost = lostValues(before, after);
    if (lost.length > 0) throw new Error(`from schema ${from}: lost ${lost.join(', ')}`);

    const kills = await killPoints(strace, source, old, path);
    const chosen = short ? sample(kills, SHORT_KILLS, random) : kills;
    for (const [call, nth] of chosen) {
      await startFrom(old, path);
      runTraced(strace, source, path, [`inject=${call}:signal=KILL:when=${nth}`]);
      const left = readContent(path);
      if (!wholes.some((whole) => isDeepStrictEqual(left, whole))) {
        throw new Error(
          `from schema ${from}, killed at ${call} ${nth}: neither the old store nor a newer one`,
        );
      }
      const code = runOpen(process.execPath, [OPEN, source, path]);
      if (code !== 0 || !isDeepStrictEqual(readContent(path), after)) {
        throw new Error(`from schema ${from}, killed at ${call} ${nth}: not upgraded after that`);
      }
    }
    print(`from schema ${from}: ${chosen.length} kills`);
    figures.push([
      `kills from schema ${from} to ${migrations.length}`,
      `${chosen.length}, each old or whole, then upgraded`,
    ]);
  }
  return figures;
}

/** Creates a store by `prepare`; adds rows, and a WAL as daemons have it, if its schema `filledFor` is above 0. */
function makeStore(
  path: string,
  prepare: (db: Database.Database) => void,
  filledFor: number | undefined,
): void {
  const db = new Database(path);
  prepare(db);
  if (filledFor !== undefined && filledFor > 0) {
    fill(db);
    db.pragma('journal_mode = WAL');
  }
  db.close();
}

async function startFrom(old: string, path: string): Promise<void> {
  for (const suffix of ['', '-wal', '-shm', '-journal', '.lock', '.lock-journal']) {
    await rm(path + suffix, { force: true });
  }
  await copyFile(old, path);
}

/** Returns every call that an undisturbed upgrade makes. */
async function killPoints(
  strace: string,
  source: string,
  old: string,
  path: string,
): Promise<readonly (readonly [call: string, nth: number])[]> {
  await startFrom(old, path);
  const trace = `${path}.trace`;
  if (runTraced(strace, source, path, [], trace) !== 0) {
    throw new Error('the upgrade fails without a kill');
  }
  const lines = callsOf(await readFile(trace, 'latin1'));
  return CALLS.flatMap((call) =>
    lines.filter((line) => line.startsWith(`${call}(`)).map((_, n) => [call, n + 1] as const),
  );
}

function runTraced(
  strace: string,
  source: string,
  path: string,
  expressions: readonly string[],
  trace = '/dev/null',
): number | null {
  const traced = [`trace=${CALLS.join()}`, ...expressions].flatMap((each) => ['-e', each]);
  const args = [...EVERY_THREAD, '-o', trace, ...traced, process.execPath, OPEN, source, path];
  return runOpen(strace, args);
}

function runOpen(program: string, args: readonly string[]): number | null {
  return spawnSync(program, args, { stdio: 'ignore' }).status;
}

function sample<Item>(items: readonly Item[], count: number, random: () => number) {
  return Array.from({ length: count }, () => items[Math.floor(random() * items.length)]).filter(
    (item) => item !== undefined,
  );
}

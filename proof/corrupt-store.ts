import { execFileSync } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { SCHEMA_VERSION } from '../src/store/sqlite/sql/migrate.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import {
  type Answer,
  askReader,
  askStore,
  isFoundBySqlite,
  judge,
  loadStores,
  type Stores,
  type Verdict,
} from './corrupt-store/answers.ts';
import { randomNumbers } from './random.ts';
import { type Row, SOURCE } from './row.ts';

const WORKLOAD = fileURLToPath(new URL('power-loss/workload.ts', import.meta.url));
const HEADER_BYTES = 100;

/**
 * Checks that a store with flipped bits, cut short, replaced, or of a newer or changed schema is refused with instructions,
 * or answers like the intact one. A bit flip inside a value is the exception, because SQLite has no checksums: such wrong
 * answers are counted in a figure, and are no failure.
 */
export const corruptStore: Row = {
  name: 'corrupt-store',
  bug: {
    what: 'a newer schema is read as if it were known',
    file: 'store/sqlite/sql/migrate.ts',
    replace: [['if (version <= SCHEMA_VERSION) return;', 'if (version > 0) return;']],
    notice: /newer schema/,
  },
  run: async ({ short, seed, print, source = SOURCE }) => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'store.db');
    execFileSync(process.execPath, [WORKLOAD, SOURCE, path, '60'], { stdio: 'pipe' });
    const bytes = await readFile(path);
    const stores = await loadStores(source);
    const intact = { reader: await askReader(stores, path), store: await askStore(stores, path) };
    const random = randomNumbers(seed);

    /** Replaces the store by these bytes and judges both answers. */
    async function verdictsOf(
      content: Buffer,
    ): Promise<readonly [byReader: Verdict, byStore: Verdict]> {
      for (const suffix of ['-wal', '-shm', '-journal']) await rm(path + suffix, { force: true });
      await writeFile(path, content);
      return await ask(stores, path, intact);
    }

    const flips = short ? 15 : 500;
    const daemon = { right: 0, refused: 0, wrong: 0 };
    const commands = { right: 0, refused: 0, wrong: 0 };
    let unnoticed = 0;
    for (let flip = 0; flip < flips; flip += 1) {
      const content = Buffer.from(bytes);
      const at = Math.floor(random() * content.length);
      content[at] = (content[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      const [byReader, byStore] = await verdictsOf(content);
      commands[byReader] += 1;
      daemon[byStore] += 1;
      if (byStore === 'wrong') {
        await writeFile(path, content);
        if (isFoundBySqlite(path)) unnoticed += 1;
      }
      if (flip % 100 === 99) print(`${flip + 1} flipped bits`);
    }
    if (unnoticed > 0) {
      const share = `${unnoticed} of ${flips}`;
      throw new Error(`${share} flipped bits make wrong answers, and SQLite could have told`);
    }

    const lengths = Array.from({ length: short ? 8 : 200 }, (_, n) =>
      n % 4 === 0
        ? 1 + Math.floor(random() * HEADER_BYTES)
        : Math.floor(random() * (bytes.length - 1)) + 1,
    );
    const cut = { right: 0, refused: 0 };
    for (const length of lengths) {
      const verdicts = await verdictsOf(bytes.subarray(0, length));
      const verdict = worst(verdicts);
      if (verdict === 'wrong')
        throw new Error(
          `cut to ${length} of ${bytes.length} bytes, and not noticed: ${verdicts.join()}`,
        );
      cut[verdict] += 1;
    }

    for (const [what, make] of foreignFiles(bytes)) {
      for (const suffix of ['-wal', '-shm', '-journal']) await rm(path + suffix, { force: true });
      await make(path);
      const before = await readFile(path);
      const verdicts = await ask(stores, path, intact);
      if (verdicts.some((verdict) => verdict !== 'refused')) throw new Error(`${what} is accepted`);
      if (!before.equals(await readFile(path))) throw new Error(`${what} was changed`);
    }

    const shares = ({ right, refused, wrong }: Record<Verdict, number>) => {
      const share = (count: number) => `${((100 * count) / flips).toFixed(1)} %`;
      return `${share(refused)} refused, ${share(right)} right, ${share(wrong)} wrong`;
    };
    return [
      ['bit flips, one a file', String(flips)],
      ['… the daemon', shares(daemon)],
      ['… reading commands', shares(commands)],
      ['… wrong answers that SQLite could have told', '0'],
      ['files cut short', `${lengths.length}: ${cut.refused} refused, ${cut.right} right`],
      [
        'files of others, newer and changed schemas',
        `${foreignFiles(bytes).length}, refused unchanged`,
      ],
    ];
  },
};

/** Settles each failure at once, so none is reported. */
const QUIET_TRIGGER =
  'CREATE TRIGGER quiet AFTER INSERT ON failure BEGIN UPDATE failure SET settled_at = 1; END';

async function ask(
  stores: Stores,
  path: string,
  intact: { readonly reader: Answer; readonly store: Answer },
): Promise<readonly [byReader: Verdict, byStore: Verdict]> {
  // The reader first: it changes nothing.
  const reader = judge(await askReader(stores, path), intact.reader);
  return [reader, judge(await askStore(stores, path), intact.store)];
}

function worst(verdicts: readonly Verdict[]): Verdict {
  return (['wrong', 'refused'] as const).find((verdict) => verdicts.includes(verdict)) ?? 'right';
}

function foreignFiles(
  store: Buffer,
): readonly (readonly [what: string, make: (path: string) => void | Promise<void>])[] {
  const edited = (sql: string, start?: Buffer) => async (path: string) => {
    await writeFile(path, start ?? '');
    const db = new Database(path);
    db.exec(sql);
    db.close();
  };
  return [
    ['a trigger', edited(QUIET_TRIGGER, store)],
    ['a view', edited('CREATE VIEW v AS SELECT * FROM failure', store)],
    ['an index', edited('CREATE INDEX i ON failure (settled_at)', store)],
    ['a table', edited('CREATE TABLE t (a)', store)],
    ['a virtual table', edited('CREATE VIRTUAL TABLE t USING fts5(a)', store)],
    ['a column', edited('ALTER TABLE failure ADD COLUMN a TEXT', store)],
    ['a generated column', edited('ALTER TABLE failure ADD COLUMN a TEXT AS (error_id)', store)],
    ['an index less', edited('DROP INDEX failure_pending', store)],
    ['a table less', edited('PRAGMA foreign_keys = OFF; DROP TABLE settlement', store)],
    [
      'a view that has the name of a table',
      edited(
        'ALTER TABLE settlement RENAME TO t; CREATE VIEW settlement AS SELECT * FROM t',
        store,
      ),
    ],
    ['a newer schema', edited('PRAGMA user_version = 99', store)],
    ['the next schema', edited(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`, store)],
    ['another mark', edited('PRAGMA application_id = 7', store)],
    ['no mark', edited('PRAGMA application_id = 0', store)],
    ["another program's database", edited('CREATE TABLE t (a); INSERT INTO t VALUES (1)')],
    ['a text', (path) => writeFile(path, 'service:\n'.repeat(100))],
    ['zeros', (path) => writeFile(path, Buffer.alloc(store.length))],
    [
      'a picture',
      (path) => writeFile(path, Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n'), store])),
    ],
  ];
}

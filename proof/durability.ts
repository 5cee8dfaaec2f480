import { debianTool } from '../test/support/debian-tool.ts';
import { cutPower, failCalls, type FaultOptions, killUpgrades } from './durability/faults.ts';
import { randomNumbers } from './random.ts';
import { type Bug, type Figures, required, type Row, SOURCE } from './row.ts';

const PARTS: Readonly<Record<string, (options: FaultOptions) => Promise<Figures>>> = {
  'power cuts': cutPower,
  'failing calls': failCalls,
  'killed upgrades': killUpgrades,
};

/** Ends the transaction in the middle of its work, so that a fault can come in between. */
const SPLIT = "db.exec('COMMIT');\ndb.exec('BEGIN');\n";

/** Ends the transaction before one of the statements of a change. */
function splitBefore(name: string): Bug['replace'][number] {
  const run = 'const returned = run(text);\n';
  return [run, `if (name === '${name}') {\n${SPLIT}}\n${run}`];
}

const BUGS: readonly Bug[] = [
  {
    part: 'power cuts',
    what: 'synchronous=NORMAL',
    file: 'store/sqlite/file.ts',
    replace: [
      ['synchronous = FULL', 'synchronous = NORMAL'],
      ['synchronous === 2', 'synchronous === 1'],
    ],
    notice: /times lost: /,
  },
  {
    part: 'power cuts',
    what: 'synchronous=OFF',
    file: 'store/sqlite/file.ts',
    replace: [
      ['synchronous = FULL', 'synchronous = OFF'],
      ['synchronous === 2', 'synchronous === 0'],
    ],
    notice: /times damaged: /,
  },
  {
    part: 'power cuts',
    what: 'statuses in a transaction before that of their transitions',
    file: 'store/sqlite/sql/poll-commit.ts',
    replace: [['upsertRecords(key, rows);\n', `upsertRecords(key, rows);\n${SPLIT}`]],
    notice: /torn statuses/,
  },
  {
    part: 'power cuts',
    what: 'totals in a transaction before that of their transitions',
    file: 'store/sqlite/sql/poll-commit.ts',
    replace: [['return changes > 0 ? key', `${SPLIT}return changes > 0 ? key`]],
    notice: /torn totals/,
  },
  {
    part: 'power cuts',
    what: 'failures in a transaction after that of their transitions',
    file: 'store/sqlite/sql/poll-commit.ts',
    replace: [
      [
        "if (kind === 'prompt' && to === 'FAILED') statements.insertFailure.run(transitionId, key);",
        '',
      ],
      [
        'return transitions.map((transition) => addTransition(key, kind, transition, at));',
        `const added = transitions.map((transition) => addTransition(key, kind, transition, at));
         ${SPLIT}for (const { transitionId, to } of added)
           if (to === 'FAILED') statements.insertFailure.run(transitionId, key);
         return added;`,
      ],
    ],
    notice: /torn pending failures/,
  },
  {
    part: 'power cuts',
    what: 'finishes in a transaction after that of their experiments',
    file: 'store/sqlite/sql/poll-commit.ts',
    replace: [
      [
        'statements.upsertExperiment.run(row);\n',
        `statements.upsertExperiment.run(row);\n${SPLIT}`,
      ],
    ],
    notice: /torn finishes/,
  },
  {
    part: 'power cuts',
    what: 'settlements in a transaction before that of their numbers',
    file: 'store/sqlite/sql/changes.ts',
    replace: [splitBefore('numbered')],
    notice: /torn settled failures/,
  },
  {
    part: 'power cuts',
    what: 'error totals in a transaction after that of their settlements',
    file: 'store/sqlite/sql/changes.ts',
    replace: [splitBefore('counted')],
    notice: /torn error totals/,
  },

  {
    part: 'failing calls',
    what: 'a failing fsync ignored',
    file: 'store/sqlite/sql/transactions.ts',
    replace: [
      [
        'if (place.ends) commit.run();',
        `try {
           if (place.ends) commit.run();
         } catch (error) {
           if ((error as { code?: string }).code !== 'SQLITE_IOERR_FSYNC') throw error;
           undo();
         }`,
      ],
    ],
    // If the lost commit is that of the configuration, the workload cannot go on.
    notice: /^fsync:.*: (lost: |told other rows)|the project "narrow" is not in the store/,
  },
  {
    part: 'failing calls',
    what: 'a commit that failed after it was stored',
    file: 'store/sqlite/sql/transactions.ts',
    replace: [
      [
        'if (place.ends) commit.run();',
        "if (place.ends) commit.run();\nif (place.ends) db.pragma('wal_checkpoint(TRUNCATE)');",
      ],
    ],
    notice: /: too many: /,
  },
  {
    part: 'failing calls',
    what: 'a failed commit of a poll taken for one without transitions',
    file: 'store/sqlite/write-queue.ts',
    replace: [
      [
        'this.#emitFailed(error);\n        write.reject(error);',
        'this.#emitFailed(error);\n        if (write.rows > 0) write.resolve([]);\n        else write.reject(error);',
      ],
    ],
    // The next commit goes on from figures that were not stored.
    notice: /told other rows than without the fault|: torn totals: /,
  },
  {
    part: 'failing calls',
    what: 'a failed commit not emitted',
    file: 'store/sqlite/write-queue.ts',
    replace: [['if (error instanceof StoreError) this.#emitFailed(error);', '']],
    notice: /calls failed, \d+ failures were emitted/,
  },

  {
    part: 'killed upgrades',
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
  {
    part: 'killed upgrades',
    what: 'an interrupted upgrade refused',
    file: 'store/sqlite/database.ts',
    replace: [
      [
        'assertIntact(db, file);\n',
        `const fs = process.getBuiltinModule('node:fs');
         const left = fs.statSync(file + '-wal', { throwIfNoEntry: false })?.size ?? 0;
         const version = Number(db.pragma('user_version', { simple: true }));
         if (left > 0 && version < migrations.length) db.exec('interrupted');
         assertIntact(db, file);\n`,
      ],
    ],
    notice: /not upgraded by the next start/,
  },
  {
    part: 'killed upgrades',
    what: 'error totals not counted by the migration',
    file: 'store/sqlite/sql/migrate.ts',
    replace: [['[5, countSettledFailures],', '[5, () => void countSettledFailures],']],
    notice: /answers otherwise than a store that never was older/,
  },
];

/**
 * Hurts a store in three ways while the same workload uses it: power cuts, failing calls, and kills of an upgrade. One judge
 * compares it with what it has promised.
 */
export const durability: Row = {
  name: 'durability',
  judges: ['src/store/sqlite/'],
  bug: BUGS,
  run: async ({ short, seed, print, source = SOURCE, part }) => {
    const strace = required('strace', debianTool('strace', 'strace'));
    const figures: (readonly [string, string])[] = [];
    for (const [name, fault] of Object.entries(PARTS)) {
      if (part !== undefined && part !== name) continue;
      figures.push(...(await fault({ strace, source, short, random: randomNumbers(seed), print })));
    }
    return figures;
  },
};

import { visible } from '../../domain/visible.ts';
import type { CheckResult } from '../../store/sqlite/check.ts';
import type { Action, Register } from '../command.ts';
import { locateStore, sqlitePath } from '../configuration.ts';
import { addStoreOptions, type JsonOption, jsonOption, type StoreOptions } from '../options.ts';
import { jsonLines } from '../output/table.ts';

/** Maximum number of findings printed for each rule; --json prints all of them. */
const MAX_FINDINGS = 10;
const ADVICE =
  'restore a backup (see `evalwatch backup --help`), or move the store and its -wal and -shm files away to start with an empty one';

export const registerStore: Register = (program, withContext) => {
  addStoreOptions(
    program
      .command('store')
      .description('Maintain the store')
      .command('check')
      .description('Check the store for damage, also while the daemon runs'),
  )
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nChanges nothing. Exits 1 if the store is damaged, and says what to do.',
    )
    .action(withContext(check));
};

const check: Action<StoreOptions & JsonOption> = async (options, context) => {
  const { store } = await locateStore(options, context);
  const path = sqlitePath(store, 'use pg_amcheck, see docs/scaling.md');
  const { checkStore } = await import('../../store/sqlite/check.ts');
  const results = await checkStore(path);
  await context.stdout.writeLines(
    options.json ? jsonLines(results, toJson) : results.flatMap(toLines),
  );
  if (results.every(isSound)) return 0;
  context.warn(`${path} is damaged: ${ADVICE}`);
  return 1;
};

function isSound({ findings }: CheckResult): boolean {
  return findings.length === 0;
}

function toJson({ rule, findings }: CheckResult): object {
  return { rule, ok: findings.length === 0, findings };
}

function toLines(result: CheckResult): readonly string[] {
  const { rule, findings } = result;
  const more = findings.length - MAX_FINDINGS;
  return [
    `${isSound(result) ? 'ok   ' : 'WRONG'}  ${rule}`,
    ...findings.slice(0, MAX_FINDINGS).map((finding) => `       ${visible(finding)}`),
    ...(more > 0 ? [`       and ${more} more: see --json`] : []),
  ];
}

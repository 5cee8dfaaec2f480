import { resolveFromUser } from '../../config/environment.ts';
import { visible } from '../../domain/visible.ts';
import type { CheckResult } from '../../store/sqlite/check.ts';
import { type Context, type Define, UsageError } from '../command.ts';
import { addStoreOptions, jsonOption, type Options } from '../options.ts';
import { locateFile } from '../query.ts';
import { toJsonDocument } from '../table.ts';

interface BackupOptions extends Options {
  readonly force?: true;
}

const BACKUP_HELP = `
The copy is a complete store. To restore it, stop the daemon, copy it over the store as in the second example, and start
the daemon. In a container: docs/operations.md, Backup and restore.

Examples:
  evalwatch backup /var/backups/evalwatch-$(date +%F).db
  evalwatch backup --store /var/backups/evalwatch-2026-11-29.db --force etc/data/evalwatch.db`;

export const defineBackup: Define = (command, run) => {
  addStoreOptions(command.argument('<file>', 'file to write'))
    .option('--force', 'replace an existing file')
    .addHelpText('after', BACKUP_HELP)
    .action(run(backup));
};

async function backup(context: Context, file: string, options: BackupOptions): Promise<number> {
  if (file === '-') {
    const instead = 'name a file (./- is a file with the name -)';
    throw new UsageError(`a backup cannot be written to stdout: ${instead}`);
  }
  const path = await locateFile(options, context, 'use pg_dump, see docs/scaling.md');
  const { backUp } = await import('../../store/sqlite/backup.ts');
  const target = resolveFromUser(file, context.env);
  const bytes = await backUp({ path, target, replace: options.force ?? false });
  await context.stdout.write(`${visible(target)}: ${bytes} bytes\n`);
  return 0;
}

/** Maximum number of findings printed for each rule; --json prints all of them. */
const MAX_FINDINGS = 10;
const ADVICE =
  'restore a backup (see `evalwatch backup --help`), or move the store and its -wal and -shm files away to start with an empty one';

export const defineStore: Define = (command, run) => {
  const below = command
    .command('check')
    .description('Check the store for damage, also while the daemon runs');
  addStoreOptions(below)
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nChanges nothing. Exits 1 if the store is damaged, and says what to do.',
    )
    .action(run(check));
};

async function check(context: Context, options: Options): Promise<number> {
  const path = await locateFile(options, context, 'use pg_amcheck, see docs/scaling.md');
  const { checkStore } = await import('../../store/sqlite/check.ts');
  const results = await checkStore(path);
  await context.stdout.write(
    options.json ? toJsonDocument(results.map(toJson)) : results.map(toText).join(''),
  );
  if (results.every(isSound)) return 0;
  context.warn(`${path} is damaged: ${ADVICE}`);
  return 1;
}

function isSound({ findings }: CheckResult): boolean {
  return findings.length === 0;
}

function toJson({ rule, findings }: CheckResult): object {
  return { rule, ok: findings.length === 0, findings };
}

function toText(result: CheckResult): string {
  const { rule, findings } = result;
  const more = findings.length - MAX_FINDINGS;
  const lines = [
    `${isSound(result) ? 'ok   ' : 'WRONG'}  ${rule}`,
    ...findings.slice(0, MAX_FINDINGS).map((finding) => `       ${visible(finding)}`),
    ...(more > 0 ? [`       and ${more} more: see --json`] : []),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

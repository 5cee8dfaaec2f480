import { visible } from '../../domain/visible.ts';
import { resolveFromUser } from '../../config/environment.ts';
import type { Register } from '../command.ts';
import { loadForStore, sqlitePath } from '../configuration.ts';
import { UsageError } from '../outcome.ts';
import { type ConfigOption, configOption } from '../options.ts';

interface BackupOptions extends ConfigOption {
  readonly force?: true;
}

const HELP = `
The copy is a complete store. To restore it: stop the daemon, delete the -wal and -shm files of the store, replace
the store with the copy, and start the daemon.

Example:
  evalwatch backup /var/backups/evalwatch-$(date +%F).db`;

export const registerBackup: Register = (program, withContext) => {
  program
    .command('backup')
    .description('Copy the store to a file, also while the daemon runs')
    .argument('<file>', 'file to write')
    .addOption(configOption())
    .option('--force', 'replace an existing file')
    .addHelpText('after', HELP)
    .action((file: string, options: BackupOptions) =>
      withContext<BackupOptions>(async ({ config: option, force }, context) => {
        if (file === '-') {
          const instead = 'name a file (./- is a file with the name -)';
          throw new UsageError(`a backup cannot be written to stdout: ${instead}`);
        }
        const config = await loadForStore(option, context);
        const path = sqlitePath(config.store, 'use pg_dump, see docs/scaling.md');
        const { backUp } = await import('../../store/sqlite/backup.ts');
        const target = resolveFromUser(file, context.env);
        const bytes = await backUp({ path, target, replace: force ?? false });
        await context.stdout.write(`${visible(target)}: ${bytes} bytes\n`);
        return 0;
      })(options),
    );
};

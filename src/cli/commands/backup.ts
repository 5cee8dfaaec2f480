import { visible } from '../../domain/visible.ts';
import { resolveFromUser } from '../../config/environment.ts';
import type { Register } from '../command.ts';
import { locateStore, sqlitePath } from '../configuration.ts';
import { UsageError } from '../outcome.ts';
import { addStoreOptions, type StoreOptions } from '../options.ts';

interface BackupOptions extends StoreOptions {
  readonly force?: true;
}

const HELP = `
The copy is a complete store. To restore it: stop the daemon, delete the -wal and -shm files of the store, replace
the store with the copy, and start the daemon.

Example:
  evalwatch backup /var/backups/evalwatch-$(date +%F).db`;

export const registerBackup: Register = (program, withContext) => {
  addStoreOptions(
    program
      .command('backup')
      .description('Copy the store to a file, also while the daemon runs')
      .argument('<file>', 'file to write'),
  )
    .option('--force', 'replace an existing file')
    .addHelpText('after', HELP)
    .action((file: string, given: BackupOptions) =>
      withContext<BackupOptions>(async ({ force, ...options }, context) => {
        if (file === '-') {
          const instead = 'name a file (./- is a file with the name -)';
          throw new UsageError(`a backup cannot be written to stdout: ${instead}`);
        }
        const { store } = await locateStore(options, context);
        const path = sqlitePath(store, 'use pg_dump, see docs/scaling.md');
        const { backUp } = await import('../../store/sqlite/backup.ts');
        const target = resolveFromUser(file, context.env);
        const bytes = await backUp({ path, target, replace: force ?? false });
        await context.stdout.write(`${visible(target)}: ${bytes} bytes\n`);
        return 0;
      })(given),
    );
};

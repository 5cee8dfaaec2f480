import { Command, type OutputConfiguration } from 'commander';
import { version } from '../app/version.ts';
import type { WithContext } from './command.ts';
import { registerBackup } from './commands/backup.ts';
import { registerCauses } from './commands/causes.ts';
import { registerCheck } from './commands/check.ts';
import { registerCompletion } from './commands/completion.ts';
import { registerDemo } from './commands/demo.ts';
import { registerExport } from './commands/export.ts';
import { registerFailures } from './commands/failures.ts';
import { registerInit } from './commands/init.ts';
import { registerMigrateStore } from './commands/migrate-store.ts';
import { registerPoll } from './commands/poll.ts';
import { registerRun } from './commands/run.ts';
import { registerSimulate } from './commands/simulate.ts';
import { registerStatus } from './commands/status.ts';
import { registerStore } from './commands/store.ts';
import { registerTransitions } from './commands/transitions.ts';

/** Functions that add the commands to the program, in the order of the help text. */
const COMMANDS = [
  registerInit,
  registerRun,
  registerCheck,
  registerPoll,
  registerStatus,
  registerTransitions,
  registerFailures,
  registerCauses,
  registerExport,
  registerBackup,
  registerStore,
  registerMigrateStore,
  registerSimulate,
  registerDemo,
  registerCompletion,
];

/** Creates the parser of the command line. It throws where commander would end the process. */
export function createProgram(withContext: WithContext, output: OutputConfiguration = {}): Command {
  const program = new Command('evalwatch')
    .description(
      'Polls an Evaluation Service and reports the evaluations it finds failed through logs, Prometheus metrics and alerts',
    )
    .version(version)
    .configureOutput(output)
    .exitOverride();
  for (const register of COMMANDS) register(program, withContext);
  return program;
}

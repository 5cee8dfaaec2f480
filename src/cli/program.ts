import { Command, type OutputConfiguration } from 'commander';
import { version } from '../version.ts';
import type { Act } from './command.ts';
import { registerBackup } from './backup.ts';
import { registerCheck } from './check.ts';
import { registerCompletion } from './completion.ts';
import { registerDemo } from './demo.ts';
import { registerExport } from './export.ts';
import { registerFailures } from './failures.ts';
import { registerMigrateStore } from './migrate-store.ts';
import { registerPoll } from './poll.ts';
import { registerRun } from './run.ts';
import { registerSimulate } from './simulate.ts';
import { registerStatus } from './status.ts';
import { registerStore } from './store.ts';
import { registerTransitions } from './transitions.ts';

/** The commands in the order of the help text; each adds itself to the program. */
const COMMANDS = [
  registerRun,
  registerCheck,
  registerPoll,
  registerStatus,
  registerTransitions,
  registerFailures,
  registerExport,
  registerBackup,
  registerStore,
  registerMigrateStore,
  registerSimulate,
  registerDemo,
  registerCompletion,
];

/** The whole command line; it throws where commander would end the process. */
export function createProgram(act: Act, output: OutputConfiguration = {}): Command {
  const program = new Command('evalwatch')
    .description('Watches the evaluations of an Evaluation Service and tells when they fail')
    .version(version)
    .configureOutput(output)
    .exitOverride();
  for (const register of COMMANDS) register(program, act);
  return program;
}

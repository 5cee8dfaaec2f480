import { Argument } from 'commander';
import type { Register } from '../command.ts';
import { completionScript, SHELLS, type Shell } from '../output/completion-scripts.ts';

const HELP = `
Examples:
  source <(evalwatch completion bash)       for this shell; in ~/.bashrc for each new shell
  source <(evalwatch completion zsh)        the same for zsh; in ~/.zshrc put it after compinit
  evalwatch completion fish > ~/.config/fish/completions/evalwatch.fish`;

export const registerCompletion: Register = (program, withContext) => {
  program
    .command('completion')
    .description('Print a shell script that completes commands and options')
    .addArgument(new Argument('<shell>', 'name of the shell').choices(SHELLS))
    .addHelpText('after', HELP)
    .action((shell: Shell) =>
      withContext(async (_options, { stdout }) => {
        await stdout.write(completionScript(program, shell));
        return 0;
      })({}),
    );
};

import { Argument } from 'commander';
import type { Register } from '../command.ts';
import { completionScript, SHELLS, type Shell } from '../output/completion-scripts.ts';

const HELP = `
Examples:
  source <(evalwatch completion bash)       for this bash, or in ~/.bashrc for every one
  source <(evalwatch completion zsh)        the same in ~/.zshrc, after compinit
  evalwatch completion fish > ~/.config/fish/completions/evalwatch.fish`;

export const registerCompletion: Register = (program, act) => {
  program
    .command('completion')
    .description('Print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'whose script').choices(SHELLS))
    .addHelpText('after', HELP)
    .action((shell: Shell) =>
      act(async (_options, { stdout }) => {
        await stdout.write(completionScript(program, shell));
        return 0;
      })({}),
    );
};

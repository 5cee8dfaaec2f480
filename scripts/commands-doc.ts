import type { Command } from 'commander';
import { createProgram } from '../src/cli/main.ts';

let written = '';
const program = await createProgram(() => () => Promise.resolve(), undefined, {
  writeOut: (text) => {
    written += text;
  },
  getOutHelpWidth: () => 100,
});

function helpOf(command: Command): string {
  written = '';
  command.outputHelp();
  return written.trim();
}

function sections(command: Command, path: string): string {
  const below = command.commands.map((each) => sections(each, `${path} ${each.name()}`));
  if (below.length > 0) return below.join('');
  return `\n## ${path}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`;
}

function overview(command: Command, path: string): readonly string[] {
  if (command.commands.length > 0)
    return command.commands.flatMap((each) => overview(each, `${path} ${each.name()}`));
  return [`| [\`${path}\`](#${path.replaceAll(' ', '-')}) | ${command.description()} |`];
}

/** Returns docs/commands.md, made from the help texts. */
export function commandsDocument(): string {
  return `# Commands

<!-- Made from the help texts by npm run generate. -->

From a checkout, run \`npm run --silent evalwatch -- <command>\`. \`--help\` prints the help of a command. Exit codes: 0 success, 1 failure, 2 bad usage or bad configuration. Results go to stdout, everything else to stderr. Only \`run\` and \`poll\` need an API key. Commands that read the store also work while a daemon runs.

| command | description |
| --- | --- |
${program.commands.flatMap((command) => overview(command, command.name())).join('\n')}
${program.commands.map((command) => sections(command, command.name())).join('')}`;
}

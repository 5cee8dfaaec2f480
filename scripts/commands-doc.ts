import type { Command, Option } from 'commander';
import { createProgram } from '../src/cli/main.ts';

let written = '';
const program = await createProgram(() => () => Promise.resolve(), undefined, {
  writeOut: (text) => {
    written += text;
  },
  getOutHelpWidth: () => 100,
});
const commands = program.commands.flatMap((command) => runnable(command, command.name()));
const uses = Map.groupBy(
  commands.flatMap(({ command }) => command.options),
  rowOf,
);

/** An option that several commands have, which the page describes once. */
const isShared = (option: Option) => (uses.get(rowOf(option))?.length ?? 0) > 1;

function runnable(command: Command, path: string): { command: Command; path: string }[] {
  if (command.commands.length === 0) return [{ command, path }];
  return command.commands.flatMap((each) => runnable(each, `${path} ${each.name()}`));
}

function rowOf({ flags, description, defaultValueDescription }: Option): string {
  const preset =
    defaultValueDescription === undefined ? '' : ` (default: ${defaultValueDescription})`;
  return `| \`${flags}\` | ${description}${preset} |`;
}

/** Returns the help of a command without the description, which the list has, and without the shared options. */
function helpOf(command: Command): string {
  written = '';
  command
    .helpOption(false)
    .description('')
    .configureHelp({
      visibleOptions: ({ options }) => options.filter((option) => !isShared(option)),
    })
    .outputHelp();
  return written.trim();
}

function section({ command, path }: { command: Command; path: string }): string {
  const description = command.description();
  const shared = command.options.filter(isShared).map(({ long }) => `\`${long}\``);
  const also =
    shared.length === 0 ? '' : ` Also has [${shared.join(', ')}](#options-of-several-commands).`;
  return `\n## ${path}\n\n${description}.${also}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`;
}

const overview = commands.map(
  ({ command, path }) => `- [\`${path}\`](#${path.replaceAll(' ', '-')}): ${command.description()}`,
);
const sharedRows = [...uses].filter(([, options]) => options.length > 1).map(([row]) => row);

/** Returns docs/commands.md, made from the help texts. */
export function commandsDocument(): string {
  return `# Commands

<!-- Made from the help texts by npm run generate. -->

What failed today, and why:

\`\`\`console
$ evalwatch failures --since 24h --limit 2
transition_id  time                  project         prompt_id      prompt_name               settled  reason  error_id             error_msg
2437           2026-11-29T16:54:00Z  search-ranking  prompt-001239  tool choice v2 #1239      yes      -       DATASET_ROW_INVALID  Column "expected" is empty in row 206.
2433           2026-11-29T16:53:58Z  search-ranking  prompt-001240  self-critique loop #1240  yes      -       DATASET_ROW_INVALID  Column "expected" is empty in row 206.
\`\`\`

| question | command |
| --- | --- |
| Why did this prompt fail? | \`evalwatch failures --prompt ID\` |
| Where is it now, and for how long? | \`evalwatch status --prompt ID\` |
| Has this experiment finished? | \`evalwatch experiments --experiment NAME\`; in a pipeline [\`wait\`](#wait) |
| What fails most? | \`evalwatch causes\` |
| Which project cannot be polled? | \`evalwatch projects --state down\`; the [page](operations.md#commands-by-deployment) and the log line \`poll.failed\` also say what was answered |
| Until when is it [paused](configuration.md#maintenance)? | \`evalwatch projects --state paused\`; \`evalwatch check\` also names the next pause |

- **Which configuration**: a command reads the file that \`--config\` names; without it, the one that the variable \`EVALWATCH_CONFIG\` names; without both, \`config/evalwatch.yaml\` below the current directory. \`evalwatch check\` names it. \`--store FILE\` reads a store or a backup without a configuration. \`wait\`, \`simulate\` and \`demo\` read none.
- **How it is run**: in a clone, as \`npm run --silent evalwatch -- failures\`; in a container, in Kubernetes and with systemd [as listed here](operations.md#commands-by-deployment). \`--help\` prints the help of a command. Only \`run\` and \`poll\` need an API key. Commands that read the store also work while a daemon runs.
- **What comes out**: results on stdout, everything else on stderr. Exit codes: 0 success, 1 failure, 2 bad usage or bad configuration ([all](specification.md#exit-codes)).

All commands:

${overview.join('\n')}

## Options of several commands

| option | meaning |
| --- | --- |
${sharedRows.join('\n')}
${commands.map(section).join('')}`;
}

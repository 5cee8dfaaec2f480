import type { Command, Option } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** Returns the completion script of a shell for all commands and options of `program`. */
export function completionScript(program: Command, shell: Shell): string {
  const commands = commandsOf(program);
  if (shell === 'fish') return `${fishScript(program, commands)}\n`;
  const script = `${bashScript(program, commands)}\n`;
  return shell === 'bash'
    ? script
    : `#compdef evalwatch\nautoload -U +X bashcompinit && bashcompinit\n${script}`;
}

interface CommandPath {
  /** Words of the command line: `store check`. */
  readonly path: string;
  readonly command: Command;
}

/** Returns each command without subcommands. */
function commandsOf(program: Command, parents: readonly string[] = []): readonly CommandPath[] {
  return program.commands.flatMap((command) => {
    const words = [...parents, command.name()];
    const below = commandsOf(command, words);
    return below.length > 0 ? below : [{ path: words.join(' '), command }];
  });
}

function optionsOf(command: Command): readonly Option[] {
  return command.createHelp().visibleOptions(command);
}

function flagsOf(command: Command): string {
  return optionsOf(command)
    .map(({ long }) => long)
    .join(' ');
}

/** Recognises options with a file by the name of their value. */
function takesFile({ flags }: Option): boolean {
  return /[<[]file[>\]]/.test(flags);
}

function argumentsOf(command: Command): readonly string[] {
  return command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
}

function argumentIsFile(command: Command): boolean {
  return command.registeredArguments.some((argument) => argument.name() === 'file');
}

function bashScript(program: Command, commands: readonly CommandPath[]): string {
  const options = commands.flatMap(({ command }) => optionsOf(command));
  const files = new Set(options.filter(takesFile).map(({ long }) => long));
  const choices = new Map(
    options.flatMap(({ long, argChoices }) => (argChoices ? [[long, argChoices]] : [])),
  );
  const names = program.commands.map((command) => command.name());
  const groups = program.commands.filter(({ commands: below }) => below.length > 0);
  return [
    '_evalwatch() {',
    '  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words= files=',
    '  COMPREPLY=()',
    '  case "$previous" in',
    `    ${[...files].join('|')}) COMPREPLY=($(compgen -f -- "$current")); return ;;`,
    ...[...choices].map(
      ([long, values]) =>
        `    ${long}) COMPREPLY=($(compgen -W "${values?.join(' ')}" -- "$current")); return ;;`,
    ),
    '  esac',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    words="${[...names, '--help', '--version'].join(' ')}"`,
    ...groups.map(
      (group) =>
        `  elif [ "$COMP_CWORD" -eq 2 ] && [ "\${COMP_WORDS[1]}" = ${group.name()} ]; then words="${group.commands.map((each) => each.name()).join(' ')}"`,
    ),
    '  else',
    '    case "${COMP_WORDS[1]} ${COMP_WORDS[2]} " in',
    ...commands.map(({ path, command }) => {
      const words = [...argumentsOf(command), flagsOf(command)].join(' ');
      return `      "${path} "*) words="${words}"${argumentIsFile(command) ? ' files=yes' : ''} ;;`;
    }),
    '    esac',
    '  fi',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '  if [ -n "$files" ]; then COMPREPLY+=($(compgen -f -- "$current")); fi',
    '}',
    'complete -o filenames -F _evalwatch evalwatch',
  ].join('\n');
}

function fishScript(program: Command, commands: readonly CommandPath[]): string {
  const lines = ['complete -c evalwatch -f'];
  const none = '__fish_use_subcommand';
  for (const command of program.commands) {
    lines.push(line(none, `-a ${command.name()}`, command.description()));
    for (const below of command.commands) {
      const condition = `__fish_seen_subcommand_from ${command.name()}`;
      lines.push(line(condition, `-a ${below.name()}`, below.description()));
    }
  }
  for (const { path, command } of commands) {
    const [first, ...others] = path.split(' ');
    const condition = [first, ...others]
      .map((word) => `__fish_seen_subcommand_from ${word}`)
      .join('; and ');
    if (argumentIsFile(command)) lines.push(line(condition, '-F', ''));
    for (const word of argumentsOf(command)) lines.push(line(condition, `-a ${word}`, ''));
    for (const option of optionsOf(command)) {
      const takesValue = option.required || option.optional;
      const takes = takesFile(option) ? ' -r -F' : takesValue ? ' -x' : '';
      const values = option.argChoices ? ` -a "${option.argChoices.join(' ')}"` : '';
      const name = option.long?.slice(2) ?? '';
      lines.push(line(condition, `-l ${name}${takes}${values}`, option.description));
    }
  }
  return lines.join('\n');
}

function line(condition: string, what: string, description: string): string {
  const suffix =
    description === '' ? '' : ` -d '${description.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
  return `complete -c evalwatch -n '${condition}' ${what}${suffix}`;
}

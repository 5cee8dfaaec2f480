import type { Command } from 'commander';
import { commandThroughNpm, type Env, readVariable } from '../config/environment.ts';
import { closest, didYouMean } from '../config/suggest.ts';
import { UsageError } from './outcome.ts';

/**
 * Rewrites `help store check` and `store help check` to `store check --help`, because commander reads only the first word
 * after `help` and ignores an unknown one.
 * @throws {UsageError} for an unknown command
 */
export function rewriteHelpCommand(program: Command, words: readonly string[]): readonly string[] {
  let command: Command | undefined = program;
  for (const [index, word] of words.entries()) {
    if (word === 'help' && command.commands.length > 0) {
      const asked = words.slice(index + 1);
      if (asked.length === 0 || asked.some((each) => each.startsWith('-'))) return words;
      assertCommandExists(command, asked);
      return [...words.slice(0, index), ...asked, '--help'];
    }
    command = find(command, word);
    if (command === undefined) return words;
  }
  return words;
}

function assertCommandExists(start: Command, words: readonly string[]): void {
  let command = start;
  for (const word of words) {
    const next = find(command, word);
    if (next === undefined) {
      const names = command.commands.map((each) => each.name());
      throw new UsageError(`unknown command '${word}'${didYouMean(closest(word, names))}`);
    }
    command = next;
  }
}

/**
 * Refuses a command line without the `--` that npm needs before the options of a command: npm has then taken them for its own,
 * has set a variable for each, and has passed on the other words only.
 * @throws {UsageError}
 */
export function assertNpmTookNoOption(program: Command, words: readonly string[], env: Env): void {
  const name = commandThroughNpm(env);
  // An option that npm has passed on came after `--`: the variables are then from elsewhere, such as `json=true` in .npmrc.
  if (name === undefined || words.some((word) => word.startsWith('-'))) return;
  let command = program;
  for (const word of words) {
    const next = find(command, word);
    if (next === undefined) break;
    command = next;
  }
  const taken = command.options.filter(
    ({ long }) =>
      readVariable(env, `npm_config_${long?.slice(2).replaceAll('-', '_')}`) !== undefined,
  );
  if (taken.length === 0) return;
  const options = taken.map(({ long }) => long).join(' and ');
  const path = words.slice(0, words.indexOf(command.name()) + 1).join(' ');
  const flags = taken.map(({ flags: each }) => each).join(' ');
  throw new UsageError(
    `npm has taken ${options} for itself, because -- is missing before the command: ${name} ${path} ${flags}`,
  );
}

function find(command: Command, name: string): Command | undefined {
  return command.commands.find((each) => each.name() === name);
}

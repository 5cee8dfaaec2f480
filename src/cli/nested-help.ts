import type { Command } from 'commander';
import { closest, didYouMean } from '../config/suggest.ts';
import { UsageError } from './outcome.ts';

/**
 * The words of a command line, with `help store check`, or `store help check`, written as `store check --help`: commander
 * looks at the first word only, and says nothing of one that it does not know.
 * @throws {UsageError} for a command that there is not
 */
export function rewriteHelpCommand(program: Command, words: readonly string[]): readonly string[] {
  let command: Command | undefined = program;
  for (const [index, word] of words.entries()) {
    if (word === 'help' && command.commands.length > 0) {
      const asked = words.slice(index + 1);
      if (asked.length === 0 || asked.some((each) => each.startsWith('-'))) return words;
      assertCommand(command, asked);
      return [...words.slice(0, index), ...asked, '--help'];
    }
    command = find(command, word);
    if (command === undefined) return words;
  }
  return words;
}

function assertCommand(start: Command, words: readonly string[]): void {
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

function find(command: Command, name: string): Command | undefined {
  return command.commands.find((each) => each.name() === name);
}

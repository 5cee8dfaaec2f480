import type { Command } from 'commander';
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

function find(command: Command, name: string): Command | undefined {
  return command.commands.find((each) => each.name() === name);
}

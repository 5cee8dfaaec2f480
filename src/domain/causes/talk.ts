import { matchAt } from './match.ts';
import { FAILURES } from './word-lists.ts';

const TALK =
  /\s{1,3}(?:I(?:['’](?:m|ve|d|ll))?\s|Sure\b|Certainly\b|As an AI\b|Here(?:['’]s| is| are)\b|Okay\b|Let me\b|Based on\b|Thank you\b|Of course\b|Great\b|Hello\b|Hi\b|Dear\b|My\b|Yes,|No,)/y;
const FIRST_PERSON = /(?<![\p{L}\p{N}])(?:I(?:['’](?:m|ve|d|ll))?|my) \p{L}/u;
const UNQUOTED = /[^\n:"'`“„‘«‹「『]{0,200}/y;
/** Common words of German, French, Spanish, Italian and Dutch that English does not have. */
const FOREIGN_WORD =
  /(?<![\p{L}\p{N}])(?:und|ist|nicht|ich|ein|eine|mit|der|das|est|une|pas|les|des|vous|je|que|los|las|por|para|che|il|het|een|niet)(?![\p{L}\p{N}])/giu;
/** Words that make a language: one of them may be a name. */
const FOREIGN_WORDS = 2;
/** More words than the name of a status has. */
const SENTENCE = /\s\p{Lu}\S*(?: \S+){4}/uy;
const FIRST_WORDS = /(?: \p{Ll}+){1,3}/uy;

/** Returns whether a sentence begins at `at`. */
export function isSentenceAt(text: string, at: number): boolean {
  return matchAt(SENTENCE, text, at) !== null;
}

/** Returns whether the clause at `at` begins with a failure, such as `response did not match`: its author wrote it. */
export function isFailureAt(text: string, at: number): boolean {
  return (matchAt(FIRST_WORDS, text, at)?.[0] ?? '').split(' ').some((word) => FAILURES.has(word));
}

/** Returns whether a model begins to talk at `at`, as most of them do. */
export function isTalkAt(text: string, at: number): boolean {
  return matchAt(TALK, text, at) !== null;
}

/** Returns whether the clause at `at` is in the first person or in another language than English. */
export function isOfOthersAt(text: string, at: number): boolean {
  const clause = matchAt(UNQUOTED, text, at)?.[0] ?? '';
  return FIRST_PERSON.test(clause) || (clause.match(FOREIGN_WORD)?.length ?? 0) >= FOREIGN_WORDS;
}

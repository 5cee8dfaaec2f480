import { FAILURES, READING_VERBS, SPOKEN, TEXT_VERBS } from './word-lists.ts';

/** Korean appends particles to its words. */
const KOREAN_READING = /^(?:해석|분석|파싱|추출)/;
const KOREAN_SPOKEN = /^(?:응답|출력|답변)/;

const MAX_ASCII = 0x7f;
const OTHER_SCRIPT = /[\p{L}--[\p{sc=Latin}\p{sc=Common}]]/v;
/** Words in Latin letters after which those in others are another text. */
const LATIN_WORDS = 3;

const FAILURE = 1;
const TEXT_VERB = 2;
const READING_VERB = 4;
const SPOKEN_NOUN = 8;
/** What words say of the clause that they are in, as bits. */
const KINDS = new Map<string, number>();
for (const [words, kind] of [
  [FAILURES, FAILURE],
  [TEXT_VERBS, TEXT_VERB],
  [READING_VERBS, READING_VERB],
  [SPOKEN, SPOKEN_NOUN],
] as const) {
  for (const word of words) KINDS.set(word, (KINDS.get(word) ?? 0) | kind);
}

/** The words of a message so far, as far as they decide what the next ones are. */
export class WordTrail {
  /** The last word and the one before it, in lower case. */
  last = '';
  secondLast = '';
  /** Whether the last word has a capital letter, and not because it is the first one. */
  isLastCapital = false;
  count = 0;
  /** Kinds of the words of this clause. */
  #kinds = 0;
  #hasOtherScript = false;

  /** Whether all words are in Latin letters, and enough to tell that the author writes in these. */
  get isLatin(): boolean {
    return this.count >= LATIN_WORDS && !this.#hasOtherScript;
  }

  /** Whether this clause has a word such as `failed`. */
  get hasFailure(): boolean {
    return (this.#kinds & FAILURE) > 0;
  }

  add(word: string): void {
    this.secondLast = this.last;
    this.last = word.toLowerCase();
    this.isLastCapital = word !== this.last && this.count > 0;
    this.count += 1;
    this.#kinds |= KINDS.get(this.last) ?? (isFailureName(this.last) ? FAILURE : 0);
    if (word.charCodeAt(0) <= MAX_ASCII) return;
    this.#hasOtherScript ||= OTHER_SCRIPT.test(word);
    if (KOREAN_READING.test(this.last)) this.#kinds |= READING_VERB;
    if (KOREAN_SPOKEN.test(this.last)) this.#kinds |= SPOKEN_NOUN;
  }

  /**
   * Ends a clause. Returns whether it announces a text, such as `Could not parse the answer` or `Last reply of the judge`,
   * and not a reason.
   */
  endClause(): boolean {
    const kinds = this.#kinds;
    this.#kinds = 0;
    if ((kinds & TEXT_VERB) > 0) return true;
    return (kinds & SPOKEN_NOUN) > 0 && ((kinds & READING_VERB) > 0 || (kinds & FAILURE) === 0);
  }
}

/** Whether a word is the name of an exception. */
function isFailureName(word: string): boolean {
  return word.endsWith('error') || word.endsWith('exception') || word.endsWith('failure');
}

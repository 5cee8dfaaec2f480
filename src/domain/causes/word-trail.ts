import { FAILURES, READING_VERBS, SPOKEN, TEXT_VERBS } from './word-lists.ts';

/** Korean appends particles to its words. */
const KOREAN_READING = /^(?:해석|분석|파싱|추출)/;
const KOREAN_SPOKEN = /^(?:응답|출력|답변)/;

const MAX_ASCII = 0x7f;

/** The words of a message so far, as far as they decide what the next ones are. */
export class WordTrail {
  /** The last word and the one before it, in lower case. */
  last = '';
  secondLast = '';
  /** Whether the last word has a capital letter. */
  isLastCapital = false;
  count = 0;
  #hasReadingVerb = false;
  #hasSpokenNoun = false;
  #hasTextVerb = false;
  #hasFailure = false;

  add(word: string): void {
    this.secondLast = this.last;
    this.last = word.toLowerCase();
    this.isLastCapital = word !== this.last;
    this.count += 1;
    const isForeign = word.charCodeAt(0) > MAX_ASCII;
    this.#hasFailure ||= FAILURES.has(this.last) || isFailureName(this.last);
    this.#hasTextVerb ||= TEXT_VERBS.has(this.last);
    this.#hasReadingVerb ||=
      READING_VERBS.has(this.last) || (isForeign && KOREAN_READING.test(this.last));
    this.#hasSpokenNoun ||= SPOKEN.has(this.last) || (isForeign && KOREAN_SPOKEN.test(this.last));
  }

  /**
   * Ends a clause. Returns whether it announces a text, such as `Could not parse the answer` or `Last reply of the judge`,
   * and not a reason.
   */
  endClause(): boolean {
    const announcesText =
      this.#hasTextVerb || (this.#hasSpokenNoun && (this.#hasReadingVerb || !this.#hasFailure));
    this.#hasReadingVerb = false;
    this.#hasSpokenNoun = false;
    this.#hasTextVerb = false;
    this.#hasFailure = false;
    return announcesText;
  }
}

/** Whether a word is the name of an exception. */
function isFailureName(word: string): boolean {
  return word.endsWith('error') || word.endsWith('exception') || word.endsWith('failure');
}

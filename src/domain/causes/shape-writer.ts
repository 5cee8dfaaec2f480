import { DAYS_AND_MONTHS, HEADINGS, UNITS } from './word-lists.ts';

const MASK = '<*>';
/** Between two masks these are a list, a date or an address. */
const JOINING = /^[ ,:;./|+&~<>#@$%_'-]*$/;
/** Directly before a mask these belong to it. */
const SIGNS = /(^|[\s([])[<>~#$+@±-]{1,3}$/;
/** Names of a day and a month before their number. */
const DATE_BEFORE =
  /(?:^|([ ([,:]{1,2}))(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}[ ,.]{0,2}){1,2}$/;
/** Longer than a date. */
const DATE_LENGTH = 40;
/** Parentheses with nothing but a mask, or with several values and their names. */
const EMPTY_PARENTHESES =
  / ?\( ?<\*> ?\)| \( ?\)| ?\((?:[A-Za-z][^()<]{0,50}<\*>[, ]{0,2}){2,16}[^()<]{0,50}\)/g;
/** Lists of any length. */
const REPEATED = /(<\*>[^<]{1,16}(?:<\w{1,8}>[^<]{0,4})?)\1+/g;
/** Longer than a shape, so that what is removed at the end leaves enough. */
const MAX_LENGTH = 400;
/** A number changes the form of this many words behind it. */
const COUNTED_WORDS = 2;
/** Maximum length of a run of one separator; the rest is left out. */
const MAX_RUN = 3;
const MAX_GAP = 32;

/** Collects words and masks. Joins masks in a row, and takes units, dates and plurals for parts of a number. */
export class ShapeWriter {
  #text = '';
  #gap = '';
  #lastWord = '';
  #endsWithMask = false;
  #wordsSinceNumber = COUNTED_WORDS;
  #hasTellingWord = false;

  word(word: string): void {
    const isNear = this.#gap === ' ' || this.#gap === '';
    if (this.#endsWithMask && isNear && (UNITS.has(word) || DAYS_AND_MONTHS.has(word))) {
      this.#gap = '';
      return;
    }
    const isCounted = this.#wordsSinceNumber < COUNTED_WORDS && this.#gap === ' ';
    this.#text += this.#gap + (isCounted ? singular(word) : word);
    this.#gap = '';
    this.#wordsSinceNumber += 1;
    this.#lastWord = word;
    this.#endsWithMask = false;
    this.#hasTellingWord ||= !HEADINGS.has(word.toLowerCase());
  }

  separator(separators: string): void {
    for (const each of separators) {
      if (this.#gap.length > MAX_GAP) return;
      const isSpace = each.trim() === '';
      const isLeft = isSpace
        ? this.#gap.endsWith(' ') || (this.#gap === '' && this.#text === '')
        : this.#gap.endsWith(each.repeat(MAX_RUN));
      if (!isLeft) this.#gap += isSpace ? ' ' : each;
    }
  }

  /** Ends a line. One that has only separators is left out. */
  endLine(): void {
    if (this.isEmpty) this.#gap = '';
    else this.separator(' ');
  }

  /** `isNumber`: what follows may be counted. */
  mask(isNumber = false): void {
    if (!this.#endsWithMask && this.#gap.length <= 2 && DAYS_AND_MONTHS.has(this.#lastWord)) {
      this.#removeDate();
    }
    const isJoined = this.#endsWithMask && JOINING.test(this.#gap);
    if (!isJoined) {
      const gap =
        this.#gap === '' || this.#gap === ' ' ? this.#gap : this.#gap.replace(SIGNS, '$1');
      this.#text += gap + MASK;
    }
    this.#gap = '';
    this.#endsWithMask = true;
    this.#wordsSinceNumber = isNumber ? 0 : COUNTED_WORDS;
  }

  #removeDate(): void {
    const date = DATE_BEFORE.exec(this.#text.slice(-DATE_LENGTH));
    if (date === null) return;
    this.#text = this.#text.slice(0, this.#text.length - date[0].length);
    this.#gap = date[1] ?? '';
    this.#endsWithMask = this.#text.endsWith(MASK);
  }

  /** Separators since the last word or mask. */
  get gap(): string {
    return this.#gap;
  }

  get isEmpty(): boolean {
    return this.#text === '';
  }

  get isFull(): boolean {
    return this.#text.length > MAX_LENGTH;
  }

  /** True if there is a message, and not only a heading. */
  get isTelling(): boolean {
    return this.#hasTellingWord && !this.#gap.trimEnd().endsWith(':');
  }

  get text(): string {
    return `${this.#text}${this.#gap}`
      .replaceAll(EMPTY_PARENTHESES, '')
      .replaceAll(REPEATED, '$1')
      .replace(/[ .]{1,32}$/, '')
      .trimStart();
  }
}

/** `1 error` and `2 errors` are one message. */
function singular(word: string): string {
  if (!/^\p{Ll}{3,}s$/u.test(word) || /(?:ss|us|is|oes|nds)$/.test(word)) return word;
  return word.endsWith('ries') ? `${word.slice(0, -3)}y` : word.slice(0, -1);
}

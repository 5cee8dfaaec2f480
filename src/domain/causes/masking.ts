import { readErrorAnswer, unescapeText } from './error-answer.ts';
import { matchAt } from './match.ts';
import { endOfQuote, isQuoteAt, isWordCharacter, markAt } from './quotes.ts';
import { ShapeWriter } from './shape-writer.ts';
import { isFailureAt, isOfOthersAt, isSentenceAt, isTalkAt } from './talk.ts';
import { markupTitle, tellingPart } from './telling-part.ts';
import {
  AMBIGUOUS_LABELS,
  ANSWERED,
  LABEL_ENDS,
  LABELS,
  OWNERS,
  REASON_FOLLOWS,
  SPOKEN,
  STATUS_KEYS,
  TELLING_KEYS,
} from './word-lists.ts';
import { WordTrail } from './word-trail.ts';
import { endOfWord, hasDigit, isStatus, isVariable, type WordContext } from './words.ts';

/** Messages within messages are read to this depth. */
const MAX_DEPTH = 4;
const MAX_PARENTHESES = 64;

/** What follows the scheme of a URL, or the drive of Windows. */
const ADDRESS_REST = /:(?:\/\/|\\)(?:[^\s"'<>`)\]},，。）]*[^\s"'<>`)\]},，。）:;])?/y;
/** What follows `arn` and `urn`. */
const RESOURCE_REST = /:[^\s"'<>`)\]},]*/y;
/** Addresses of IPv6 and MAC, times, and hashes in pairs. */
const HEXADECIMAL_PAIRS =
  /[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){1,9}:[0-9A-Fa-f]{1,4}(?![\p{L}\p{N}])/uy;
const HEXADECIMAL = /^[0-9A-Fa-f]{1,4}$/;
/** What stands after `=`, such as `5` or `WorkSource{10113 mail}`. */
const VALUE = /[^\s,;)\]}>&|"'`{]*[^\s,;:)\]}>&|"'`{](?:\{[^}\n]{0,200}\})?/y;
const WORDS = /^[\p{L}_.]+$/u;
const ERROR_STATUS = /^[45]\d\d$/;
/** The beginning of an object or of a list in JSON or Python notation. */
const OBJECT = /(?:\[\s{0,20})?\{\s{0,20}\\?["'}]/y;
/** Python writes such a letter before a string. */
const STRING_PREFIX = /^(?:[bBuUrRf]|br|rb)$/;
const BYTES = /b["']\s{0,20}[{[<]/y;
/** What a template leaves to be filled in: `{name}`, `{{name}}`, `${name}`, `<<name>>`. */
const PLACEHOLDER = /\$?(?:\{{1,2} ?[\p{L}\p{N}_., -]{1,128} ?\}{1,2}|<<[\p{L}\p{N}_.]{1,64}>>)/uy;
const MARKUP =
  /<(?:!doctype\b|html\b|head\b|body\b|title\b|\?xml\b|Error>\s{0,8}<|ErrorResponse\b)/iy;
const STATUS_LINE = /(?:HTTP\/\S{1,4} )?([45]\d\d)\b(?: ([A-Z][a-z]+(?: [A-Z][a-z]+){0,3}))?/y;
const STATUS_PHRASE = /^[1-5]\d\d [A-Z][A-Za-z' -]{1,40}$/;
const REQUEST_LINE = /^(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) \S/;
const FOREIGN_LETTER = /[^\0-\x7f](?<=\p{L})/u;
/** gRPC writes the message below the status. */
const DETAILS_FOLLOW = /\n\s{0,8}(?:details|message|description|grpc_message)\s{0,3}=/y;
const STACK_FOLLOWS = /\n\s{0,8}(?:at |File |from |#\d)/y;
/** Pydantic writes the first reason below the number of errors. */
const REASON_BELOW =
  /validation errors? for [^\n]{1,200}\n(?:[^\s][^\n]{0,200}\n)? {2,4}([^\s][^\n]{0,400}?) [[(]type=/;
/** A text in other letters than Latin ones, from its first to its last letter. */
const OTHER_SCRIPT = /[^\p{sc=Latin}\n]*[\p{L}--[\p{sc=Latin}\p{sc=Common}]]/vy;
/** An element whose content somebody else wrote, such as `<answer>`. */
const ELEMENT = /<([\p{L}_][\p{L}\p{N}_-]{0,63})>/uy;
/** Names in brackets, such as `[label, score]`. */
const BRACKETED =
  /\[\s?([\p{L}\p{N}_.:/@-]{1,64})(, ?[\p{L}\p{N}_.:/@-]{1,64}){0,64}\s?\](?=([:\s]{0,2}[\p{L}[(])?)/uy;
/** Names behind a colon, such as `missing: label, score`. */
const LIST = /\s[\p{L}\p{N}_./@-]{1,64}(?:, [\p{L}\p{N}_./@-]{1,64}){1,64}(?=\s*(?:$|[\n;)\].]))/uy;
/** What a key in brackets has, such as `opus` in `[judge:opus]`. */
const BRACKETED_VALUE = /[^\s[\]]{1,64}(?=\])/y;
/** What an unquoted text, such as `raw=it is fine item=5`, goes on to. */
const TEXT_VALUE = /[^\n;]*?(?=\s[\p{L}_][\p{L}\p{N}_.-]{0,63}=|[\n;]|$)/uy;
/** Scripts that do not separate words. */
const UNSPACED =
  '\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}ー々';
const HAS_UNSPACED = new RegExp(`[${UNSPACED}]`, 'u');
const UNSPACED_PIECES = new RegExp(`[${UNSPACED}]+|[^${UNSPACED}]+`, 'gu');
const UNSPACED_NOUN = /(?:模型|用户|项目|文件|数据集|部署|モデル|ユーザー|プロジェクト|ファイル)$/u;
const UNSPACED_LABEL =
  /(?:输出|响应|回复|回答|返回|内容|出力|応答|返答|출력|응답|답변)(?:为|是|は)?$/u;
const NUMBER = /^[\d.,]+$/;
const HAS_LETTER = /[\p{L}\p{N}]/u;
const NOT_ASCII = /[^\0-\x7f]/;
/** Stands for a name that was masked, as it may look like a word of the author. */
const MASKED = '<*>';
const PLAIN_WORD = /^[A-Za-z]+$/;
/** The end of a sentence, unless the next one has a label, such as `Last error:`. */
const NEXT_SENTENCE = /[.!?]\s{1,2}(?=\p{Lu})(?!(?:[\p{L}'_-]{1,30} ){0,3}[\p{L}_-]{1,30}:\s)/uy;
/** A shorter sentence, such as `An error occurred.`, does not say what went wrong. */
const SENTENCE_WORDS = 6;
const LABEL = /^[\p{L}_.-]{1,64}$/u;
/** The name of a class, behind which its arguments stand. */
const CLASS_BEFORE = /(?:^|[^\w])(?:\w+\.)*[A-Z]\w*$/;

/** Returns the text with `<*>` for everything that varies, up to the end of what it says first. */
export function maskText(text: string): string {
  const out = new ShapeWriter();
  new Masking(out, text, 0).run();
  const reason = text.includes('validation error') ? REASON_BELOW.exec(text)?.[1] : undefined;
  if (reason !== undefined) {
    out.separator(': ');
    new Masking(out, reason, 1).run();
  }
  return out.text;
}

/** Masks one text: a message of its own (depth 0), or one that is quoted within another. */
class Masking {
  readonly #out: ShapeWriter;
  readonly #text: string;
  readonly #depth: number;
  readonly #words = new WordTrail();
  #at = 0;
  /** The label that announces what comes next as the text of a model or of a user. */
  #announcement: string | undefined;
  /** Whether each open parenthesis has the arguments of an exception. */
  readonly #calls: boolean[] = [];
  /** Quotes that are not closed any more, each of which is looked for only once. */
  readonly #unclosed = new Set<string>();
  /** Where the first letter outside ASCII stands, or -1. */
  readonly #firstForeign: number;

  constructor(out: ShapeWriter, text: string, depth: number) {
    this.#out = out;
    this.#text = text;
    this.#depth = depth;
    this.#firstForeign = NOT_ASCII.test(text) ? text.search(FOREIGN_LETTER) : -1;
  }

  run(): void {
    const text = this.#text;
    while (this.#at < text.length && !this.#out.isFull) {
      const character = text[this.#at] ?? '';
      if (character === '\n' && this.#isEndOfMessage()) return;
      this.#writeAt(character);
    }
  }

  #writeAt(character: string): void {
    switch (character) {
      case ' ':
        if (this.#isTalkOfSpeaker()) {
          this.#out.separator(' ');
          this.#out.mask();
          this.#finish();
          return;
        }
        this.#out.separator(' ');
        this.#at += 1;
        return;
      case '\n':
        this.#out.endLine();
        this.#at += 1;
        return;
      case '\t':
      case '\r':
        this.#out.separator(' ');
        this.#at += 1;
        return;
      case '=':
        this.#writeAssignment();
        return;
      case ':':
      case '：':
        this.#writeColon();
        return;
      case '{':
      case '[':
      case '<':
        if (this.#writeNotation()) return;
        break;
      default:
        if (isQuoteAt(this.#text, this.#at)) {
          this.#writeQuoted(false);
          return;
        }
    }
    const end = endOfWord(this.#text, this.#at);
    if (end === this.#at) this.#writeSeparator(character);
    else this.#writeUnquoted(end);
  }

  /** Whether what the message says ends with this line. */
  #isEndOfMessage(): boolean {
    if (this.#depth > 0 || !this.#out.isTelling) {
      return !this.#out.isEmpty && matchAt(STACK_FOLLOWS, this.#text, this.#at) !== null;
    }
    return matchAt(DETAILS_FOLLOW, this.#text, this.#at) === null;
  }

  #mask(length: number): void {
    this.#out.mask();
    this.#words.add(MASKED);
    this.#at += length;
  }

  #finish(): void {
    this.#at = this.#text.length;
  }

  /** Writes a message within the message. */
  #writeNested(message: string): void {
    if (this.#depth >= MAX_DEPTH) this.#out.mask();
    else new Masking(this.#out, tellingPart(message), this.#depth + 1).run();
  }

  /** Writes an object, a placeholder, or a page of HTML. Returns false if there is none. */
  #writeNotation(): boolean {
    const text = this.#text;
    if (matchAt(OBJECT, text, this.#at) !== null) {
      this.#writeObject();
      return true;
    }
    const placeholder = matchAt(PLACEHOLDER, text, this.#at) ?? this.#namesAt();
    if (placeholder !== null) {
      this.#mask(placeholder[0].length);
      return true;
    }
    if (matchAt(MARKUP, text, this.#at) === null) return this.#writeElement();
    this.#writeNested(markupTitle(text.slice(this.#at)));
    this.#finish();
    return true;
  }

  /** Names in brackets: a list, a value, or one name within a sentence. At its end a code may stand, such as `[NoKey]`. */
  #namesAt(): RegExpExecArray | null {
    if (this.#words.count === 0) return null;
    const isValue = this.#text[this.#at - 1] === '=';
    if (this.#out.gap === '' && !isValue) return null;
    const names = matchAt(BRACKETED, this.#text, this.#at);
    const [, first = '', others, next] = names ?? [];
    const isName = next !== undefined && first === first.toLowerCase();
    return isValue || others !== undefined || isName ? names : null;
  }

  /** Masks the content of an element. Returns false if there is none. */
  #writeElement(): boolean {
    const [opening, name] = matchAt(ELEMENT, this.#text, this.#at) ?? [];
    if (opening === undefined || name === undefined || TELLING_KEYS.has(name)) return false;
    const closing = `</${name}>`;
    const end = this.#unclosed.has(closing) ? -1 : this.#text.indexOf(closing, this.#at);
    if (end === -1) {
      this.#unclosed.add(closing);
      return false;
    }
    this.#mask(end + closing.length - this.#at);
    return true;
  }

  /** Writes what an error answer says, or masks another object, such as what a model answered. */
  #writeObject(): void {
    const announcement = this.#announcement;
    this.#announcement = undefined;
    const isEscaped = this.#text[this.#at + 1] === '\\';
    const source = isEscaped ? unescapeText(this.#text.slice(this.#at)) : this.#text;
    const { end, answer } = readErrorAnswer(source, isEscaped ? 0 : this.#at);
    const isModelText =
      announcement !== undefined && !(ANSWERED.has(announcement) && answer?.hasErrorKey === true);
    if (answer === undefined || isModelText) {
      this.#out.mask();
      this.#at = isEscaped ? this.#text.length : end;
      return;
    }
    this.#writeNested(answer.message);
    for (const label of answer.labels) {
      this.#out.separator(' ');
      if (LABEL.test(label) || ERROR_STATUS.test(label)) this.#out.word(label);
      else new Masking(this.#out, label.slice(0, 64), MAX_DEPTH).run();
    }
    this.#finish();
  }

  /** Writes what begins like a word and is not quoted. */
  #writeUnquoted(end: number): void {
    const text = this.#text;
    const word = text.slice(this.#at, end);
    const foreign =
      this.#firstForeign !== -1 && this.#words.isLatin && NOT_ASCII.test(word)
        ? matchAt(OTHER_SCRIPT, text, this.#at)
        : null;
    if (foreign !== null) {
      this.#mask(foreign[0].length);
      return;
    }
    const next = text[end];
    if (next === ':') {
      const isResource = word === 'arn' || word === 'urn';
      const rest =
        matchAt(ADDRESS_REST, text, end) ?? (isResource ? matchAt(RESOURCE_REST, text, end) : null);
      if (rest !== null) {
        this.#mask(word.length + rest[0].length);
        return;
      }
      const pairs = HEXADECIMAL.test(word) ? matchAt(HEXADECIMAL_PAIRS, text, this.#at) : null;
      if (pairs !== null) {
        this.#mask(pairs[0].length);
        return;
      }
    } else if ((next === '"' || next === "'") && STRING_PREFIX.test(word)) {
      this.#at = end;
      if (matchAt(BYTES, text, end - 1) === null) this.#writeQuoted(false);
      else this.#at += 1;
      return;
    }
    this.#writeWord(word);
    this.#at = end;
    if (this.#words.count >= SENTENCE_WORDS && matchAt(NEXT_SENTENCE, text, end - 1) !== null)
      this.#finish();
  }

  #writeWord(word: string): void {
    let length = word.length;
    while (length > 0 && '.!?…'.includes(word[length - 1] ?? '')) length -= 1;
    const core = length === word.length ? word : word.slice(0, length);
    if (PLAIN_WORD.test(core)) {
      const isMasked = isVariable(core, this.#context(core.length), true);
      if (isMasked) this.#out.mask();
      else this.#out.word(core);
      this.#words.add(isMasked ? MASKED : core);
    } else if (!HAS_LETTER.test(core)) {
      this.#out.separator(core);
    } else if (NOT_ASCII.test(core) && HAS_UNSPACED.test(core)) {
      for (const piece of core.match(UNSPACED_PIECES) ?? [])
        this.#writePiece(piece, word.length, true);
    } else {
      this.#writePiece(core, core.length, false);
    }
    if (length < word.length) this.#out.separator(word.slice(length));
  }

  #writePiece(piece: string, length: number, isUnspaced: boolean): void {
    const around = this.#context(length);
    const isName =
      isUnspaced &&
      !HAS_UNSPACED.test(piece) &&
      (UNSPACED_NOUN.test(this.#words.last) || /[-_./]/.test(piece));
    if (isStatus(piece, around)) this.#out.word(piece);
    else if (hasDigit(piece)) this.#out.mask(NUMBER.test(piece));
    else if (isName || isVariable(piece, around, false)) this.#out.mask();
    else this.#out.word(piece);
    this.#words.add(piece);
  }

  #context(length: number): WordContext {
    return { words: this.#words, gap: this.#out.gap, text: this.#text, end: this.#at + length };
  }

  /** Writes quoted text. `isTold`: its key says that it is a message. */
  #writeQuoted(isTold: boolean): void {
    const mark = markAt(this.#text, this.#at);
    const start = this.#at + mark.length;
    const end = this.#unclosed.has(mark) ? -1 : endOfQuote(this.#text, start, mark);
    if (end === -1) {
      this.#unclosed.add(mark);
      this.#out.mask();
      this.#finish();
      return;
    }
    const content = this.#text.slice(start, end);
    const isArgument = this.#calls.at(-1) === true && content.includes(' ');
    const isPanic = this.#words.last === 'at' && this.#words.secondLast === 'panicked';
    if (STATUS_PHRASE.test(content)) {
      this.#out.word(content);
    } else if (REQUEST_LINE.test(content)) {
      this.#out.word(content.slice(0, content.indexOf(' ')));
      this.#out.separator(' ');
      this.#out.mask();
    } else if (isTold || isArgument || isPanic) {
      this.#writeNested(content);
    } else {
      this.#out.mask();
    }
    this.#at = end + mark.length;
    // What a model writes goes on behind its fences.
    if (mark === '```') this.#finish();
  }

  /** Writes `=` and what it assigns. */
  #writeAssignment(): void {
    const text = this.#text;
    const key = this.#words.last;
    const isSpaced = this.#out.gap === ' ';
    const next = text[this.#at + 1] ?? '';
    if (
      next === '=' ||
      next === '>' ||
      next === '~' ||
      key === '' ||
      !(isSpaced || this.#out.gap === '')
    ) {
      this.#out.separator(text.slice(this.#at, this.#at + 2).trim());
      this.#at += 2;
      return;
    }
    this.#out.separator('=');
    this.#at += 1;
    if (isSpaced && next === ' ') {
      this.#out.separator(' ');
      this.#at += 1;
    }
    const first = text[this.#at] ?? '';
    if (TELLING_KEYS.has(key)) {
      if (first === '"' || first === "'") this.#writeQuoted(true);
    } else if (!'{[<'.includes(first)) {
      this.#writeValue(STATUS_KEYS.has(key));
    }
  }

  #writeValue(isStatusKey: boolean): void {
    const isText = SPOKEN.has(this.#words.last) || this.#words.last === 'raw';
    const value = matchAt(isText ? TEXT_VALUE : VALUE, this.#text, this.#at)?.[0];
    if (value === undefined || value === '') return;
    this.#at += value.length;
    if (isStatusKey && (WORDS.test(value) || ERROR_STATUS.test(value))) this.#out.word(value);
    else this.#out.mask();
    if (value.includes('(') && this.#text[this.#at] === ')') this.#at += 1;
  }

  /** Writes a colon, and masks what follows if that is the text of a model or of a user. */
  #writeColon(): void {
    const pairs = isWordCharacter(this.#text[this.#at - 1])
      ? null
      : matchAt(HEXADECIMAL_PAIRS, this.#text, this.#at);
    if (pairs !== null) {
      this.#mask(pairs[0].length);
      return;
    }
    const isWide =
      this.#text[this.#at] === '：' || HAS_UNSPACED.test(this.#text[this.#at - 1] ?? '');
    this.#out.separator(':');
    this.#at += 1;
    const names =
      this.#text[this.#at - 2 - this.#words.last.length] === '['
        ? matchAt(BRACKETED_VALUE, this.#text, this.#at)
        : matchAt(LIST, this.#text, this.#at);
    if (names !== null) {
      if (names[0].startsWith(' ')) this.#out.separator(' ');
      this.#mask(names[0].length);
      return;
    }
    const isRemark = this.#isRemark();
    const announcesText = this.#words.endClause() && !isFailureAt(this.#text, this.#at);
    if (!announcesText && !isRemark && !this.#isLabel(isWide) && !this.#isTalk()) return;
    let start = this.#at;
    while (start < this.#text.length && (this.#text[start] ?? '').trim() === '') start += 1;
    // In `host:443` nothing is announced. What has a notation of its own is read as such.
    if ((start === this.#at && !isWide) || start === this.#text.length) return;
    if (this.#isNotationAt(start)) this.#announcement = this.#words.last;
    if (isQuoteAt(this.#text, start) || this.#announcement !== undefined) return;
    this.#out.separator(' ');
    const status = matchAt(STATUS_LINE, this.#text, start);
    if (status === null) {
      this.#out.mask();
    } else {
      this.#out.word([status[1], status[2]].filter((part) => part !== undefined).join(' '));
      this.#out.separator(' ');
      if (this.#text.slice(start + status[0].length).trim() !== '') this.#out.mask();
    }
    this.#finish();
  }

  #isNotationAt(at: number): boolean {
    const text = this.#text;
    return (
      matchAt(OBJECT, text, at) !== null ||
      matchAt(MARKUP, text, at) !== null ||
      matchAt(BYTES, text, at) !== null
    );
  }

  /** Whether a sentence follows words that tell of no failure, such as `Reviewer disagreed`, or the reason of a judge. */
  #isRemark(): boolean {
    const { last, count, hasFailure } = this.#words;
    if (!isWordCharacter(this.#text[this.#at - 2])) return false;
    const isOfOthers = last === 'reason' || (count > 1 && !hasFailure && !TELLING_KEYS.has(last));
    return isOfOthers && isSentenceAt(this.#text, this.#at);
  }

  /** Whether the words before the colon name the text of a model or of a user. */
  #isLabel(isWide: boolean): boolean {
    const { last, secondLast } = this.#words;
    if (last === 'message' && OWNERS.has(secondLast)) return true;
    if (LABELS.has(last)) return !(AMBIGUOUS_LABELS.has(last) && REASON_FOLLOWS.has(secondLast));
    return (
      (LABEL_ENDS.has(last) && (LABELS.has(secondLast) || secondLast === 'message')) ||
      (isWide && UNSPACED_LABEL.test(last))
    );
  }

  /** Whether somebody begins to talk after words such as `the judge said`. */
  #isTalkOfSpeaker(): boolean {
    const { last } = this.#words;
    if (last === 'said') {
      const text = this.#text;
      return isWordCharacter(text[this.#at - 1]) && isWordCharacter(text[this.#at + 1]);
    }
    const speaks =
      LABELS.has(last) || LABEL_ENDS.has(last) || last === 'answered' || last === 'with';
    return speaks && isTalkAt(this.#text, this.#at);
  }

  /** Whether a text in the first person or in another language follows. */
  #isTalk(): boolean {
    const { count } = this.#words;
    const text = this.#text;
    if (text[this.#at] !== ' ' || count < 2) return false;
    if (isTalkAt(text, this.#at) || isOfOthersAt(text, this.#at)) return true;
    if (this.#firstForeign < this.#at || count < 3) return false;
    const untilForeign = text.slice(this.#at, this.#firstForeign);
    return !/: |[\n"'`“„‘«‹「『《]/.test(untilForeign);
  }

  #writeSeparator(character: string): void {
    if (character === '(') {
      const before = this.#text.slice(Math.max(0, this.#at - 64), this.#at);
      const isTuple =
        this.#out.isEmpty ||
        (this.#out.gap === ': ' && /(?:error|exception)$/.test(this.#words.last));
      if (this.#calls.length < MAX_PARENTHESES)
        this.#calls.push(isTuple || CLASS_BEFORE.test(before));
    } else if (character === ')') {
      this.#calls.pop();
    }
    this.#out.separator(character);
    this.#at += 1;
  }
}

import {
  MAYBE_STATUS_WORDS,
  NAMED,
  NO_NAMES,
  OTHER_CODES,
  PERSONS,
  PREPOSITIONS,
  STATUS_WORDS,
  VARYING_WORDS,
} from './word-lists.ts';
import type { WordTrail } from './word-trail.ts';

/** What stands around a word. */
export interface WordContext {
  readonly words: Pick<WordTrail, 'last' | 'secondLast' | 'isLastCapital'>;
  /** Separators between the word before it and this one. */
  readonly gap: string;
  /** The whole text, and where the word ends in it. */
  readonly text: string;
  readonly end: number;
}

const NUMBER = /\p{N}/u;
const TOP_LEVELS = new Set(
  (
    'com net org io ai dev cloud co app edu gov mil int eu us uk de fr nl ch at it es pl se no fi dk be ie pt cz ru ua ' +
    'cn jp kr tw hk sg in au nz br mx ca za tr il info biz xyz tech local localhost localdomain internal lan corp ' +
    'home svc cluster intranet example test invalid'
  ).split(' '),
);
const EXTENSIONS = new Set(
  (
    'json jsonl ndjson yaml yml csv tsv txt md log xml html htm pdf png jpg jpeg gif webp svg wav ogg flac zip gz tar ' +
    'tgz bz xz zst parquet arrow feather avro pkl pickle npy npz pt pth ckpt onnx bin safetensors gguf py pyc ipynb js ' +
    'mjs cjs ts tsx jsx java kt scala go rs rb php cs cpp cc hpp so dll exe jar whl sh bat ini cfg conf toml env lock ' +
    'db sqlite sql docx xlsx pptx tmp bak pem crt key proto'
  ).split(' '),
);
const KEY_PREFIX = /^(?:sk|pk|rk|ghp|gho|ghs|xox[abp]|AKIA|eyJ|hf|glpat|AIza)[-_\p{L}]{8}/u;
const SECRET = /(?:^|[-_])(?:apikey|key|passwd|password|secret|token)$/;
/** Words before a key that follows `provided`. */
const SECRETS = new Set('password passwd secret apikey api_key key'.split(' '));
const STATUS = /^[45]\d\d$/;
const STATUSES = new Set(
  (
    '400 401 402 403 404 405 406 407 408 409 410 411 412 413 414 415 416 417 418 421 422 423 424 425 426 428 429 431 ' +
    '440 444 449 451 460 495 496 497 498 499 500 501 502 503 504 505 506 507 508 509 510 511 520 521 522 523 524 525 ' +
    '526 527 529 530 598 599'
  ).split(' '),
);
const REASON =
  /^['")\]]?(?:\s{0,2}[-–:]\s{0,2}| )(?:Bad|Unauthorized|Payment|Forbidden|Not|Method|Request|Conflict|Gone|Length|Precondition|Payload|Content|URI|Unsupported|Range|Expectation|Misdirected|Unprocessable|Locked|Failed|Too|Upgrade|Unavailable|Internal|Service|Gateway|HTTP|Client|Server|Insufficient|Loop|Network|Web|Origin|Site|Overloaded|Resource|Proxy|Timeout|Error|error)\b/;
/** Nothing that could be counted follows. */
const NOT_COUNTED =
  /^(?:\s*$|\s*[-–:,;.)\]"'}\n{<]|\s+\p{Lu}|\s+(?:from|for|on|after|when|while|in|by|at|status|error|response)\b)/u;
const VERB_FOLLOWS =
  /^ (?:are|had|did|not|could|cannot|can|may|threw|must|will|already|left|took|over|\p{Ll}+(?:ed|(?<!s)s))\b/u;
/** Names of hosts and packages. A class, such as that of an error, ends with a capital word. */
const DOTTED = /^(?:[\p{L}_-]+\.){2,}\p{Ll}[\p{Ll}_-]*$/u;
const MANY_HYPHENS = /^\p{Ll}+-\p{Ll}+-[-\p{Ll}]+$/u;
const HYPHENATED = /^\p{Ll}+-[-\p{Ll}]+$/u;
const NAME_CHARACTERS = /[-_.$]/;
const LOWER = /\p{Ll}/u;
const NAME_NOUNS = new Set(['name', 'id', 'call', 'named', 'called']);
const PARSES = new Set(
  'parse validate deserialize deserialise instantiate construct coerce cast'.split(' '),
);
/** What follows a name and tells more of it or of the failure. */
const MORE_FOLLOWS = /^(?:: | \(| (?:at|on|from|since|in|after|while)\b)/;
const CAPITALISED = /^\p{Lu}\p{L}*\p{Ll}$/u;
const LAST_OF_CLAUSE = /^(?:[\s.!?]*$|[.!?]?\s*\n|[,;)\]]|\.\s)/;

/** Whether `word` is an HTTP status that says what went wrong. */
export function isStatus(word: string, context: WordContext): boolean {
  if (!STATUS.test(word) || !STATUSES.has(word)) return false;
  const { words, text, end } = context;
  const { last, secondLast } = words;
  const rest = text.slice(end, end + 40);
  if (OTHER_CODES.has(last) || (last === 'code' && OTHER_CODES.has(secondLast))) return false;
  if (REASON.test(rest)) return true;
  if (STATUS_WORDS.has(last)) return true;
  const isAtStart = last === '' && context.gap.trim() === '';
  if (context.gap.endsWith('(') && rest.startsWith(')')) return true;
  if (isAtStart) return /^(?:\s*$|\s*[-–:{<"]|\s+\p{Lu})/u.test(rest);
  return (
    (MAYBE_STATUS_WORDS.has(last) ||
      STATUS_WORDS.has(secondLast) ||
      /error$|exception$/.test(last)) &&
    NOT_COUNTED.test(rest)
  );
}

export function hasDigit(word: string): boolean {
  return NUMBER.test(word);
}

/** Whether a word without digits varies: it is an address, a path, a key or a name. */
export function isVariable(word: string, context: WordContext, isPlain: boolean): boolean {
  if (word.length === 1) return isSample(word, context);
  if (isPlain)
    return (
      VARYING_WORDS.has(word) ||
      (word.length >= 16 && isKey(word, context)) ||
      isSecret(context) ||
      isNamed(word, context)
    );
  if (word.includes('@') || /\*{3}/.test(word)) return true;
  if (MANY_HYPHENS.test(word)) return true;
  return (
    isPath(word, context) || isHostOrFile(word) || isKey(word, context) || isNamed(word, context)
  );
}

/** A single character that the message shows: `Unexpected token S in JSON`. */
function isSample(word: string, { words, gap }: WordContext): boolean {
  return (
    gap === ' ' && (words.last === 'token' || words.last === 'character') && word.trim() !== ''
  );
}

function isPath(word: string, context: WordContext): boolean {
  const slash = word.indexOf('/');
  if (slash === -1) return word.startsWith('.') || word.indexOf('\\') !== word.lastIndexOf('\\');
  if (slash === 0) return word.length > 1;
  if (/^(?:\.{1,2}|~)\//.test(word)) return true;
  if (word.lastIndexOf('/') !== slash) return true;
  return /[-_.]/.test(word) || NAMED.has(context.words.last);
}

function isHostOrFile(word: string): boolean {
  const dot = word.lastIndexOf('.');
  if (dot <= 0) return false;
  if (DOTTED.test(word)) return true;
  const ending = word.slice(dot + 1);
  return EXTENSIONS.has(ending) || (TOP_LEVELS.has(ending) && word === word.toLowerCase());
}

/** Whether a secret follows, such as in `Incorrect API key provided: …` or `Bearer …`. */
function isSecret({ words, gap }: WordContext): boolean {
  const { last, secondLast } = words;
  if (last === 'bearer' || (last === 'basic' && secondLast === 'authorization')) return true;
  if (gap !== ': ') return false;
  return last === 'provided' ? SECRETS.has(secondLast) : SECRET.test(last);
}

function isKey(word: string, context: WordContext): boolean {
  if (KEY_PREFIX.test(word) || isSecret(context)) return true;
  if (word.length > 80) return true;
  if (word.length > 40 && !/[-._]/.test(word)) return true;
  if (word.length < 16) return false;
  // Behind a prefix such as `req_`, random letters change their case more often than names in camel case do.
  const changes = word.match(/\p{Ll}\p{Lu}/gu)?.length ?? 0;
  return changes * 5 > word.length - (word.lastIndexOf('_') + 1);
}

/** Whether the words around it say that it is a name. */
function isNamed(word: string, context: WordContext): boolean {
  const { words, gap, text, end } = context;
  const { last, secondLast } = words;
  if (gap === ' ') {
    if (last === 'got' || last === 'received') return isLastOfClause(text, end);
    if (last === 'mean' || (PARSES.has(last) && CAPITALISED.test(word))) return true;
    if (HYPHENATED.test(word) && isLastOfClause(text, end)) return true;
    if (PREPOSITIONS.has(last)) return isAfterPreposition(word, context);
    if (isPerson(word, words)) return true;
  } else if ((gap === ': ' || last === '') && HYPHENATED.test(word)) {
    return true;
  }
  const isNoun =
    NAMED.has(last) ||
    PERSONS.has(last) ||
    (last.endsWith('s') && NAMED.has(last.slice(0, -1))) ||
    (NAME_NOUNS.has(last) && NAMED.has(secondLast));
  if (gap === ': ' && last.includes('_') && !STATUS_WORDS.has(last) && isEndOfName(text, end))
    return true;
  if (!isNoun || NO_NAMES.has(word.toLowerCase())) return false;
  if (gap === ' ') return isAfterNoun(word, context);
  return gap === ': ' && (NAME_CHARACTERS.test(word) || isEndOfName(text, end));
}

function isLastOfClause(text: string, end: number): boolean {
  return LAST_OF_CLAUSE.test(text.slice(end, end + 4));
}

function isEndOfName(text: string, end: number): boolean {
  return isLastOfClause(text, end) || MORE_FOLLOWS.test(text.slice(end, end + 8));
}

/** `for mistral-large`, `by alice.smith`, `2 errors for Verdict`, `password for root from 10.0.0.1`. */
function isAfterPreposition(word: string, { words, text, end }: WordContext): boolean {
  if (/[-_]/.test(word) && LOWER.test(word)) return true;
  if (/^\p{Ll}+\.\p{Ll}+$/u.test(word)) return true;
  const { last, secondLast } = words;
  if (last !== 'for' && last !== 'by' && !(last === 'of' && NUMBER.test(secondLast))) return false;
  if (NO_NAMES.has(word)) return false;
  if (isEndOfName(text, end)) return true;
  return last === 'for' && !NAMED.has(word) && VERB_FOLLOWS.test(text.slice(end, end + 24));
}

/** `model gpt-x`, `Metric tone failed`, `for user alice`. */
function isAfterNoun(word: string, { words, text, end }: WordContext): boolean {
  if (NAME_CHARACTERS.test(word) || /\p{Ll}\p{Lu}/u.test(word)) return true;
  const next = text.slice(end, end + 24);
  if (VERB_FOLLOWS.test(next)) return true;
  // Behind `prompt template` the name of the template follows.
  if (NAMED.has(word) && /^ [\p{L}\p{N}]/u.test(next)) return false;
  const isVerb = /(?:ed|ing)$/.test(word);
  if (next.startsWith(')')) return !isVerb;
  const isLower = word === word.toLowerCase();
  if (PREPOSITIONS.has(words.secondLast)) {
    if (isLower || word === word.toUpperCase()) return !isVerb || isEndOfName(text, end);
    return !words.isLastCapital && CAPITALISED.test(word);
  }
  // Behind `judge model` the name of the model follows.
  return isLower && !isVerb && !/[^s]s$/.test(word) && !NAMED.has(word) && /^ [^A-Z]/.test(next);
}

/** `user Alice`, `customer Li Wei`. */
function isPerson(
  word: string,
  { last, secondLast, isLastCapital }: WordContext['words'],
): boolean {
  if (!CAPITALISED.test(word)) return false;
  return (PERSONS.has(last) && !isLastCapital) || PERSONS.has(secondLast);
}

const WORD = 1;
/** By code unit: whether it belongs to a word. */
const CHARACTERS = Uint8Array.from({ length: 128 }, (_, code) =>
  code > 32 && code < 127 && !'=,;:()[]{}<>|"\'`'.includes(String.fromCharCode(code)) ? WORD : 0,
);
const NOT_IN_WORD = /[\s“”„‘’«»‹›「」『』《》，。；：（）！？、【】]/u;
const LETTER = /\p{L}/u;

/** Returns where the word ends that begins at `start`; `start` if there is none. */
export function endOfWord(text: string, start: number): number {
  let at = start;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 128) {
      if (CHARACTERS[code] === WORD) {
        // Dots may lead to a value: `enable.....0`.
        if (code === 0x2e && at > start && text.startsWith('...', at)) return at;
        continue;
      }
      if (code === 0x27 && at > start && isApostrophe(text, at)) continue;
      return at;
    }
    const character = text[at] ?? '';
    if (NOT_IN_WORD.test(character) && !(character === '’' && at > start && isApostrophe(text, at)))
      return at;
  }
  return at;
}

/** The apostrophe of `can't`. */
function isApostrophe(text: string, at: number): boolean {
  return LETTER.test(text[at - 1] ?? '') && LETTER.test(text[at + 1] ?? '');
}

/** A text without its escapes, with the position of each character in the source. */
export interface DecodedText {
  readonly text: string;
  /** Start of each character in the source, and the end of the source as the last entry. */
  readonly starts: Int32Array;
}

/** Returns false if a text certainly contains no escape. */
export function mayHaveEscapes(text: string): boolean {
  // Most texts contain none of these characters, and this check is faster.
  return /[\\%&ÂÃ]/.test(text) && BEGUN_ESCAPE.test(text);
}

const BEGUN_ESCAPE = /\\|%[\dA-Fa-fu]|&(?:#|[A-Za-z]{2})|[ÂÃ][\u0080-\u00bf]/;

/** Codes that escapes can stand for: printable ASCII, and 0x80 to 0xff. */
const CODES = [...range(0x20, 0x7e), ...range(0x80, 0xff)];

/** Entities that browsers also accept without a semicolon. */
const NAMES_WITHOUT_SEMICOLON: readonly (readonly [name: string, character: string])[] = [
  ...pairs('amp & AMP & lt < LT < gt > GT > quot " QUOT "'),
  ...`nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro
    para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil
    Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave
    Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml
    igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute
    thorn yuml`
    .split(/\s+/)
    .map((name, index) => [name, String.fromCharCode(0xa0 + index)] as const),
];
const NAMES_WITH_SEMICOLON = pairs(
  `excl ! num # dollar $ percnt % apos ' lpar ( rpar ) ast * midast * plus + comma , period . sol / colon : semi ;
  equals = quest ? commat @ lsqb [ lbrack [ bsol \\ rsqb ] rbrack ] Hat ^ lowbar _ UnderBar _ grave \`
  DiacriticalGrave \` lcub { lbrace { verbar | vert | VerticalLine | rcub } rbrace }`,
);

const SEMICOLON = 0x3b;
const BACKSLASH = 0x5c;
const COLUMNS = 256;

/**
 * Automaton that recognises all escapes. A state stands for the beginning of an escape; state 0 is outside of any. No
 * escape is a prefix of another one, and none contains the first character of another.
 */
const { steps, depths } = createAutomaton();

/**
 * Decodes every escape, nested ones included: `%2541`, `&amp;#65;` and `\\u0041` all become `A`. Supports `%41`,
 * `%u0041`, `\x41`, `\u0041`, entities by number or name, and UTF-8 read as Latin-1, for characters up to U+00FF. Drops
 * backslashes and semicolons, so that their number does not matter. Takes linear time.
 */
export function decodeEscapes(source: string): DecodedText {
  const codes = new Uint16Array(source.length);
  const starts = new Int32Array(source.length + 1);
  /** State of the automaton after each character. */
  const states = new Uint16Array(source.length);
  let length = 0;

  function take(character: number, at: number): void {
    let code = character;
    let start = at;
    // The decoded character may complete an escape around it.
    for (;;) {
      const state = states[length - 1] ?? 0;
      const step = code < COLUMNS ? (steps[state * COLUMNS + code] ?? 0) : 0;
      if (step >= 0) {
        const isZeroInFront = step === state && state !== 0;
        if (isZeroInFront || code === SEMICOLON) return;
        codes[length] = code;
        starts[length] = start;
        states[length] = step === 0 && code < COLUMNS ? (steps[code] ?? 0) : step;
        length += 1;
        return;
      }
      length -= depths[state] ?? 0;
      start = starts[length] ?? 0;
      if (codes[length] === BACKSLASH) {
        // A run of backslashes belongs to the escape, except for backslashes that were escapes themselves.
        for (; codes[length - 1] === BACKSLASH && starts[length - 1] === start - 1; start -= 1) {
          length -= 1;
        }
      }
      code = -step;
    }
  }

  for (let at = 0; at < source.length; at += 1) take(source.charCodeAt(at), at);
  return withoutBackslashes(codes.subarray(0, length), starts, source.length);
}

/** Removes backslashes; the character after them starts where they do. */
function withoutBackslashes(codes: Uint16Array, starts: Int32Array, end: number): DecodedText {
  let length = 0;
  let start: number | undefined;
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0;
    start ??= starts[index] ?? 0;
    if (code === BACKSLASH) continue;
    codes[length] = code;
    starts[length] = start;
    length += 1;
    start = undefined;
  }
  starts[length] = end;
  const text = Buffer.from(codes.buffer, 0, length * 2).toString('utf16le');
  return { text, starts };
}

/**
 * Returns two tables. `steps`, by state and character: the next state, the negative code of the decoded character, or 0.
 * `depths`: length of the beginning of an escape that a state stands for.
 */
function createAutomaton() {
  const rows: Int16Array[] = [new Int16Array(COLUMNS)];
  const lengths = [0];

  function rowOf(state: number): Int16Array {
    return rows[state] ?? new Int16Array();
  }

  function walk(prefix: string): number {
    let state = 0;
    for (const character of prefix) {
      const code = character.charCodeAt(0);
      const next = rowOf(state)[code] || rows.length;
      if (next === rows.length) {
        rows.push(new Int16Array(COLUMNS));
        lengths.push((lengths[state] ?? 0) + 1);
      }
      rowOf(state)[code] = next;
      state = next;
    }
    return state;
  }

  function add(escape: string, code: number): void {
    rowOf(walk(escape.slice(0, -1)))[escape.charCodeAt(escape.length - 1)] = -code;
  }

  function skip(prefix: string, character: string): void {
    const state = walk(prefix);
    rowOf(state)[character.charCodeAt(0)] = state;
  }

  for (const code of CODES) {
    for (const digits of hexOf(code)) {
      for (const prefix of ['%', '%u00', '\\x', '\\u00', '&#x', '&#X']) add(prefix + digits, code);
    }
    add(`&#${code}`, code);
    if (code >= 0xa0) add(Buffer.from(String.fromCharCode(code)).toString('latin1'), code);
  }
  for (const [name, character] of NAMES_WITHOUT_SEMICOLON) add(`&${name}`, character.charCodeAt(0));
  for (const [name, character] of NAMES_WITH_SEMICOLON) add(`&${name};`, character.charCodeAt(0));
  for (const prefix of ['&#', '&#x', '&#X']) skip(prefix, '0');
  const table = new Int16Array(rows.length * COLUMNS);
  for (const [state, row] of rows.entries()) table.set(row, state * COLUMNS);
  return { steps: table, depths: Uint8Array.from(lengths) };
}

/** Returns the two hexadecimal digits of a code, in each combination of cases. */
function hexOf(code: number): readonly string[] {
  const [high = '', low = ''] = code.toString(16);
  const cases = (digit: string) => new Set([digit, digit.toUpperCase()]);
  return [...cases(high)].flatMap((one) => [...cases(low)].map((other) => one + other));
}

function pairs(text: string): readonly (readonly [string, string])[] {
  const words = text.split(/\s+/);
  return words.flatMap((word, index) =>
    index % 2 === 0 ? [[word, words[index + 1] ?? ''] as const] : [],
  );
}

function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** A text without its escapes, and where each character comes from. */
export interface DecodedText {
  readonly text: string;
  /** Where each character begins in the source; one more than characters, the last being the source's end. */
  readonly starts: Int32Array;
}

/** Whether anything in a text may be an escape; false is certain. */
export function mayHaveEscapes(text: string): boolean {
  // Most texts have none of these characters, which is quicker to see.
  return /[\\%&ÂÃ]/.test(text) && BEGUN_ESCAPE.test(text);
}

const BEGUN_ESCAPE = /\\|%[\dA-Fa-fu]|&(?:#|[A-Za-z]{2})|[ÂÃ][\u0080-\u00bf]/;

/** What a header can carry, and the other bytes of UTF-8. */
const CODES = [...range(0x20, 0x7e), ...range(0x80, 0xff)];

/** Entities that browsers also take without a semicolon. */
const BARE_NAMES: readonly (readonly [name: string, character: string])[] = [
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
const CLOSED_NAMES = pairs(
  `excl ! num # dollar $ percnt % apos ' lpar ( rpar ) ast * midast * plus + comma , period . sol / colon : semi ;
  equals = quest ? commat @ lsqb [ lbrack [ bsol \\ rsqb ] rbrack ] Hat ^ lowbar _ UnderBar _ grave \`
  DiacriticalGrave \` lcub { lbrace { verbar | vert | VerticalLine | rcub } rbrace }`,
);

const SEMICOLON = 0x3b;
const BACKSLASH = 0x5c;
const COLUMNS = 256;

/**
 * The automaton of all escapes. A state is an escape begun; from state 0 the first character of one leads to another.
 * No escape is the beginning of another one, and none has the first character of another inside it.
 */
const { steps, depths } = createAutomaton();

/**
 * Undoes every escape, also of escapes: `%2541`, `&amp;#65;` and `\\u0041` are all `A`. Known are `%41`, `%u0041`, `\x41`,
 * `\u0041`, entities by number or name, and UTF-8 read as Latin-1; what they stand for is a character up to U+00FF.
 * Backslashes and semicolons are left out, so that it does not matter how many there are. Takes time in proportion to the
 * length.
 */
export function decodeEscapes(source: string): DecodedText {
  const codes = new Uint16Array(source.length);
  const starts = new Int32Array(source.length + 1);
  /** The escape that each character carries on with. */
  const states = new Uint16Array(source.length);
  let length = 0;

  function take(character: number, at: number): void {
    let code = character;
    let start = at;
    // What an escape stands for may complete the one around it.
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
        // All of a run belong to it, but not one that was written as an escape itself.
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

/** A backslash counts to the character behind it. */
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

/** `steps` by state and character: the next state, minus the code of the character that an escape stands for, or 0. */
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
  for (const [name, character] of BARE_NAMES) add(`&${name}`, character.charCodeAt(0));
  for (const [name, character] of CLOSED_NAMES) add(`&${name};`, character.charCodeAt(0));
  for (const prefix of ['&#', '&#x', '&#X']) skip(prefix, '0');
  const table = new Int16Array(rows.length * COLUMNS);
  for (const [state, row] of rows.entries()) table.set(row, state * COLUMNS);
  return { steps: table, depths: Uint8Array.from(lengths) };
}

/** Both digits in either case. */
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

export interface TextRule {
  readonly name: string;
  /** Returns a text of about `length` characters. */
  make(length: number): string;
}

/** Characters of every class that a reader may treat specially. */
const CHARACTERS = [
  ...Array.from(` !"#$%&'()*+,-./0159:;<=>?@AZ[\\]^_\`amuz{|}~`),
  ...Array.from('\0\t\n\v\r\u001b\u007f\u0085\u00a0\u00adÃ©éß'),
  // Combining, joining, invisible, bidirectional, line-ending, wide, a surrogate pair, halves of one.
  ...Array.from('\u0301\u200b\u200d\u200f\u202e\u2028\u2066\ufeff\ufffd漢😀'),
  '\ud800',
  '\udc00',
];

/** Pieces that readers take for the beginning, or the whole, of something. */
const PIECES = [
  ...String.raw`\u0041 \\u0041 \x41 \" \/ \\ %25 %2525 %41 %u0041 &amp; &#65; &#0 &#x0 &lt &ampamp; +%20`.split(
    ' ',
  ),
  ...`[], {}, {"a": "a", "a":1, [[ ]] }{ ][ 1e 1, -0 true, null, [0], "id":"a", "" // --`.split(
    ' ',
  ),
  ...`a=b& a.b. a- a_ 1d 1h 1m 1s 1d1h 10s 1ms 00: 1:1: */1, 1-2, 1,2, *, L, 5#2, jan- [::1] 1.1. @a: //a? http:// &a! *a`.split(
    ' ',
  ),
  '&a ',
  '*a ',
  '- ',
  'a: ',
  '? ',
  '!a ',
  '\n- ',
  '\na: b',
  '\n ',
  '\n\t',
  ' #',
  '--- ',
  '%YAML ',
  '"a" ',
  "'' ",
  'Mon, ',
  ' GMT',
  'gzip,',
  ' ,',
  ', ',
  '\r\n',
  '\n\n',
  ' \n',
  'x ',
  '=\n',
  '\u001b[31m',
  'W/"a", ',
  'Basic ',
  '-----BEGIN',
  '-----BEGIN CERTIFICATE-----',
  '-----BEGIN CERTIFICATE-----A',
  '-----END CERTIFICATE-----',
];

/** Characters that make readers go back and forth when two of them are mixed. */
const MIXED = Array.from(`\\"%&+[{,:-. \n1a`);

const NESTINGS = ['[]', '{}', '()', '<>', '""', '{"a":}', '[{}]', '- \n', '&#;', '\\"', '%2'];

/** Returns the text in ASCII, on one line. */
function shown(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Returns a rule for a run of each unit. Between two `x`, readers may search from every place of the run. */
function runs(units: readonly string[], within: '' | 'x'): readonly TextRule[] {
  return units.map((unit) => ({
    name: `a run of ${shown(unit)}${within === '' ? '' : ` between two ${within}`}`,
    make: (length) => within + unit.repeat(Math.ceil(length / unit.length)) + within,
  }));
}

const nestings: readonly TextRule[] = NESTINGS.map((pair) => ({
  name: `a nesting of ${shown(pair)}`,
  make: (length) => {
    const half = Math.ceil(pair.length / 2);
    const times = Math.ceil(length / pair.length);
    return pair.slice(0, half).repeat(times) + pair.slice(half).repeat(times);
  },
}));

const pairs = MIXED.flatMap((one) =>
  MIXED.filter((other) => other !== one).map((other) => one + other),
);
const halves: readonly TextRule[] = pairs.map((pair) => ({
  name: `half a run of ${shown(pair.slice(0, 1))}, half of ${shown(pair.slice(1))}`,
  make: (length) => pair.slice(0, 1).repeat(length / 2) + pair.slice(1).repeat(length / 2),
}));

export const CHARACTER_RUNS = runs(CHARACTERS, 'x');

export const OTHER_RULES: readonly TextRule[] = [
  ...nestings,
  ...runs(CHARACTERS, ''),
  ...runs(PIECES, ''),
  ...runs(PIECES, 'x'),
  ...runs(pairs, ''),
  ...halves,
];

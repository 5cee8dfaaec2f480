const LENGTH = 64 * 1024;

/** Pieces that some rule takes for the beginning, the end or a part of something. */
const PIECES = [
  ...Array.from(`aA0 _-.:;,=/\\@#$%&*+~^|<>()[]{}"'\``),
  ...'“ ” « 「 』 《 é 漢 1漢 😀 ก 한'.split(' '),
  '\ud800',
  '\udc00',
  '\u0000',
  '\u001b[31m',
  '\u202e',
  '\u2066',
  '\u200b',
  '\ufeff',
  '\n',
  '\r\n',
  '\t',
  'a-',
  'a.',
  'a@',
  'a@a.',
  'a:',
  'a=',
  'a = ',
  '1 ',
  '1,',
  '404 ',
  "'a ",
  " 'a",
  '"a" ',
  '"a: ',
  '\\"',
  '\\\\',
  '{"a":',
  "{'error': {'message': '",
  '[{"',
  '[{',
  '({',
  "E('a b",
  'E(',
  'b"{',
  '```',
  '"""',
  '<a>',
  '<a>b</a>',
  '<html>',
  '<title',
  '<Message>',
  '{a} ',
  '${',
  '<<a>>',
  'output: ',
  'output=',
  'raw=a ',
  'a: je est ',
  'a: b, ',
  '[a, ',
  ' [a]',
  '[a:b]',
  'a said ',
  'it was not 漢',
  'output:',
  '输出：',
  'a: b: ',
  'I am ',
  'http://',
  'http://a/',
  'C:\\a\\',
  'arn:',
  '::1',
  'Traceback (most recent call last):\n',
  '  File "a", line 1\n',
  '  | File "a", line 1\n',
  'Traceback (most recent call last):\\n',
  '    at a (b:1:2)\n',
  'Caused by: a\n',
  "thread 'a' panicked at b:\n",
  'panic: a\n',
  '1 validation error for a\n',
  'validation errors for a\na\n  a ',
  'model a ',
  'for a from ',
  'Mon, Jan ',
  '<*>',
  '<*> ',
  'Bearer ',
  '…',
  '(1) ',
  '[[[',
];

/** Texts of 64 KiB that are slow if a rule scans any part twice. */
export const HOSTILE_TEXTS: readonly (readonly [name: string, text: string])[] = [
  ...PIECES.map((piece) => [`a run of ${shown(piece)}`, run(piece, LENGTH)] as const),
  ...PIECES.map(
    (piece) =>
      [`words, then a run of ${shown(piece)}`, `it failed ${run(piece, LENGTH)} x`] as const,
  ),
  ...['[]', '{}', '()', '""', "''", '<>', '“”', '「」'].map((pair) => {
    const [open = '', close = ''] = pair;
    return [`a nesting of ${pair}`, run(open, LENGTH / 2) + run(close, LENGTH / 2)] as const;
  }),
];

function run(piece: string, length: number): string {
  return piece.repeat(Math.ceil(length / piece.length)).slice(0, length);
}

function shown(piece: string): string {
  return JSON.stringify(piece);
}

import { expect, it } from 'vitest';
import { csvLine } from '../../../src/cli/output/csv.ts';

it.each([
  [['a', 7, ''], 'a,7,'],
  [['a,b', 'say "hi"', 'a;b'], '"a,b","say ""hi""",a;b'],
  [['=1+1', '+1', '-1', '@SUM(A1)'], "'=1+1,'+1,'-1,'@SUM(A1)"],
  [
    ['\uff1d1+1', '\uff0b1', '\uff0d1', '\uff20A1', '\ufe661'],
    "'\uff1d1+1,'\uff0b1,'\uff0d1,'\uff20A1,'\ufe661",
  ],
  [
    [' =1', '\u00a0=1', '\u3000-1', '\u200c=1', '"=1'],
    `' =1,'\u00a0=1,'\u3000-1,'\u200c=1,"'""=1"`,
  ],
  [['a;=1', 'a; =1', 'a|@A1', 'a;"=1'], `a;'=1,a;' =1,a|'@A1,"a;'""=1"`],
  [['=cmd|"x"', ';=;+'], `"'=cmd|""x""",;'=;'+`],
  [['\t=1', 'two\nlines', 'a\r\n=1', '\u2028=1'], '\\t=1,two\\nlines,a\\r\\n=1,\\u2028=1'],
  [
    ['\u001b[2J', '\u009b2J', 'a\u202eb', '\u{e0041}'],
    '\\u001b[2J,\\u009b2J,a\\u202eb,\\udb40\\udc41',
  ],
  [[-5, 'a=b', 'a - b', 'a,-b', 'Ä\u{1F600}'], '-5,a=b,a - b,"a,-b",Ä\u{1F600}'],
])('%j becomes one CSV line with control characters and formulas escaped', (cells, line) => {
  expect(csvLine(cells)).toBe(`${line}\r\n`);
});

import { expect, it } from 'vitest';
import { csvLine } from '../../../src/cli/csv.ts';

it.each([
  [['a', 7, ''], 'a,7,'],
  [['a,b', 'say "hi"', 'two\nlines'], '"a,b","say ""hi""","two\nlines"'],
  [['a\rb'], '"a\rb"'],
  [['=1+1', '+1', '-1', '@SUM(A1)'], "'=1+1,'+1,'-1,'@SUM(A1)"],
  [['\t=1', '\r=1', '=cmd|"x"'], `'\t=1,"'\r=1","'=cmd|""x"""`],
  [[-5, 'a=b', 'Ä\u{1F600}'], '-5,a=b,Ä\u{1F600}'],
])('%j is one line that no spreadsheet runs', (cells, line) => {
  expect(csvLine(cells)).toBe(`${line}\r\n`);
});

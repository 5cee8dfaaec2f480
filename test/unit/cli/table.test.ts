import { describe, expect, it } from 'vitest';
import {
  type Column,
  createTable,
  csvHeader,
  csvRows,
  toJsonDocument,
  truncate,
} from '../../../src/cli/table.ts';

interface Row {
  readonly id: string;
  readonly status: string;
  readonly name: string | undefined;
}

const columns: readonly Column<Row>[] = [
  ['id', ({ id }) => id],
  ['status', ({ status }) => status],
  ['since', () => '2026-11-21T03:12:40Z', { isOptional: true }],
  ['name', ({ name }) => name],
];

const lines = (rows: readonly Row[], width?: number) =>
  createTable(columns, { width, color: false })(rows).trimEnd().split('\n');

describe('a table', () => {
  it('aligns its columns under a header and does not pad the last one', () => {
    const rows = [
      { id: 'a', status: 'RUNNING', name: 'first' },
      { id: 'longer', status: 'FAILED', name: undefined },
    ];
    expect(lines(rows)).toEqual([
      'id      status   since                 name',
      'a       RUNNING  2026-11-21T03:12:40Z  first',
      'longer  FAILED   2026-11-21T03:12:40Z  -',
    ]);
  });

  it('cuts nothing without a terminal', () => {
    const name = 'x'.repeat(5000);
    expect(lines([{ id: 'a', status: 'FAILED', name }])[1]).toMatch(new RegExp(` ${name}$`));
  });

  it('cuts its last column at the edge of the terminal, but never below 8 columns', () => {
    const rows = [{ id: 'a', status: 'COMPLETED', name: 'n'.repeat(60) }];
    expect(lines(rows, 50)[1]).toBe(`a   COMPLETED  2026-11-21T03:12:40Z  ${'n'.repeat(12)}…`);
    expect(lines(rows, 10)[1]).toBe('a   COMPLETED  nnnnnnn…');
  });

  it('leaves out optional columns if the terminal is too narrow for all columns', () => {
    const rows = [{ id: 'a', status: 'COMPLETED', name: 'n'.repeat(60) }];
    const headers = [44, 45, undefined].map((width) => lines(rows, width)[0]?.split(/ +/));
    const all = ['id', 'status', 'since', 'name'];
    expect(headers).toEqual([['id', 'status', 'name'], all, all]);
  });

  it('aligns columns that contain wide characters', () => {
    const rows = [
      { id: '日本', status: 'A', name: 'x' },
      { id: 'abcd', status: 'B', name: 'y' },
    ];
    expect(lines(rows, 30).slice(1)).toEqual(['日本  A       x', 'abcd  B       y']);
  });

  it('prints its header once, and keeps its widths for later rows', () => {
    const table = createTable(columns.slice(0, 2), { width: undefined, color: false });
    const row = { status: 'A', name: '' };
    expect(table([{ id: 'long', ...row }])).toBe('id    status\nlong  A\n');
    expect(table([{ id: 'a', ...row }])).toBe('a     A\n');
  });
});

it.each([
  ['fits', 4, 'fits'],
  ['does not', 4, 'doe…'],
  ['日本語', 6, '日本語'],
  ['日本語', 5, '日本…'],
  ['日本語', 4, '日…'],
  ['🚀🚀', 3, '🚀…'],
  ['e\u0301e\u0301', 2, 'e\u0301e\u0301'],
  ['x', 1, 'x'],
  ['xy', 1, '…'],
])('truncate of %j to %i columns is %j', (text, width, kept) => {
  expect(truncate(text, width)).toBe(kept);
});

it.each([[[]], [[1]], [[1, 2, 3]]])('%j form one JSON document, one line per row', (numbers) => {
  const rows = numbers.map((n) => ({ n }));
  const text = toJsonDocument(rows);
  expect(JSON.parse(text)).toEqual(rows);
  expect(text.trimEnd().split('\n')).toHaveLength(Math.max(1, rows.length));
});

it.each([
  [['a', 7, ''], 'a,7,'],
  [['a,b', 'say "hi"', 'a;b'], '"a,b","say ""hi""",a;b'],
  [['=1+1', '+1', '-1', '@SUM(A1)'], "'=1+1,'+1,'-1,'@SUM(A1)"],
  [['\uff1d1+1', '\uff0b1', '\ufe661'], "'\uff1d1+1,'\uff0b1,'\ufe661"],
  [['\t=1', 'two\nlines', 'a\r\n=1', '\u2028=1'], '\\t=1,two\\nlines,a\\r\\n=1,\\u2028=1'],
  [['\u001b[2J', 'a\u202eb', '\u{e0041}'], '\\u001b[2J,a\\u202eb,\\udb40\\udc41'],
  [[-5, 'a=b', 'a - b', 'Ä\u{1F600}'], '-5,a=b,a - b,Ä\u{1F600}'],
])('%j becomes one CSV line with control characters and formulas escaped', (cells, line) => {
  expect(csvRows([Object.fromEntries(cells.entries())], Object.keys(cells).join())).toBe(
    `${line}\r\n`,
  );
});

it('a CSV file begins with a byte order mark, which Excel needs, and the names of its columns', () => {
  expect(csvHeader('a,b')).toBe('\ufeffa,b\r\n');
});

import { describe, expect, it } from 'vitest';
import { jsonLines, tableLines, type Column } from '../../../src/cli/output/table.ts';
import { widthOf } from '../../../src/cli/output/text.ts';

interface Row {
  readonly id: string;
  readonly status: string;
  readonly name: string | undefined;
}

const columns: readonly Column<Row>[] = [
  { name: 'id', cell: ({ id }) => id, isTruncatable: true },
  { name: 'status', cell: ({ status }) => status },
  { name: 'name', cell: ({ name }) => name, isTruncatable: true },
];

const lines = (rows: readonly Row[], width?: number) => [
  ...tableLines(rows, columns, { width, color: false }),
];

describe('a table', () => {
  it('aligns its columns under a header and does not pad the last one', () => {
    const rows = [
      { id: 'a', status: 'RUNNING', name: 'first' },
      { id: 'longer', status: 'FAILED', name: undefined },
    ];
    expect(lines(rows)).toEqual([
      'id      status   name',
      'a       RUNNING  first',
      'longer  FAILED   -',
    ]);
  });

  it('truncates nothing without a terminal', () => {
    const name = 'x'.repeat(5000);
    expect(lines([{ id: 'a', status: 'FAILED', name }])[1]).toBe(`a   FAILED  ${name}`);
  });

  it('truncates the widest cells first to fit the terminal', () => {
    const rows = [{ id: 'i'.repeat(12), status: 'COMPLETED', name: 'n'.repeat(60) }];
    const table = lines(rows, 50);
    expect(table[1]).toBe(`${'i'.repeat(12)}  COMPLETED  ${'n'.repeat(24)}…`);
    expect(table.every((line) => widthOf(line) <= 50)).toBe(true);
  });

  it('never truncates a status, even if the row exceeds the terminal', () => {
    const rows = [{ id: 'i'.repeat(40), status: 'COMPLETED', name: 'n'.repeat(60) }];
    expect(lines(rows, 10)[1]).toBe('iiiiiii…  COMPLETED  nnnnnnn…');
  });

  it('omits optional columns if the terminal is too narrow for all columns', () => {
    const withTime = columns.toSpliced(2, 0, {
      name: 'since',
      cell: () => '2026-11-21T03:12:40Z',
      isOptional: true,
    });
    const rows = [{ id: 'i'.repeat(40), status: 'COMPLETED', name: 'n'.repeat(60) }];
    const headers = [50, 51, undefined].map((width) => {
      const [header = '', row = ''] = tableLines(rows, withTime, { width, color: false });
      expect(widthOf(row)).toBeLessThanOrEqual(width ?? Infinity);
      return header.split(/ +/);
    });
    const all = ['id', 'status', 'since', 'name'];
    expect(headers).toEqual([['id', 'status', 'name'], all, all]);
  });

  it('aligns columns that contain wide characters', () => {
    const rows = [
      { id: '日本', status: 'A', name: 'x' },
      { id: 'abcd', status: 'B', name: 'y' },
    ];
    expect(lines(rows).slice(1)).toEqual(['日本  A       x', 'abcd  B       y']);
  });
});

describe('JSON lines', () => {
  it.each([[[]], [[1]], [[1, 2, 3]]])('of %j form one JSON document, one line per row', (rows) => {
    const text = [...jsonLines(rows, (n) => ({ n }))];
    expect(JSON.parse(text.join('\n'))).toEqual(rows.map((n) => ({ n })));
    expect(text).toHaveLength(Math.max(1, rows.length));
  });
});

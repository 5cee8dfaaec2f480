import { cut, visible, visibleJson, widthOf } from './text.ts';

export interface Column<Row> {
  readonly name: string;
  /** The cell's text as it came; undefined is shown as `-`. */
  readonly cell: (row: Row) => string | undefined;
  /** What does not fit the terminal may be cut here. */
  readonly cuttable?: true;
}

const GAP = '  ';
const LEAST = 8;

/**
 * The lines of a table with a header, made one by one. The last column is not padded: the free text belongs there.
 * `width` is that of the terminal, undefined for a reader that wants everything.
 */
export function* tableLines<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number | undefined,
): Generator<string> {
  const widths = columns.map((column) =>
    rows.reduce(
      (widest, row) => Math.max(widest, widthOf(cellText(column, row))),
      column.name.length,
    ),
  );
  if (width !== undefined) shrink(widths, columns, width);
  yield line(
    columns.map((column) => column.name),
    widths,
  );
  for (const row of rows) {
    yield line(
      columns.map((column) => cellText(column, row)),
      widths,
    );
  }
}

function cellText<Row>(column: Column<Row>, row: Row): string {
  const text = column.cell(row);
  return text === undefined ? '-' : visible(text);
}

/** Takes from the widest column that may be cut until all fit, or nothing more can be taken. */
function shrink(widths: number[], columns: readonly Column<never>[], width: number): void {
  const widthAt = (index: number) => widths[index] ?? 0;
  const cuttable = [...columns.keys()].filter((index) => columns[index]?.cuttable);
  let excess = widths.reduce((sum, each) => sum + each, GAP.length * (widths.length - 1)) - width;
  for (; excess > 0; excess -= 1) {
    const widest = Math.max(...cuttable.map(widthAt));
    if (widest <= LEAST) return;
    const index = cuttable.find((each) => widthAt(each) === widest) ?? 0;
    widths[index] = widest - 1;
  }
}

function line(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, index) => {
      const width = widths[index] ?? 0;
      const text = cut(cell, width);
      return index === cells.length - 1 ? text : text + ' '.repeat(width - widthOf(text));
    })
    .join(GAP);
}

/** The lines of one JSON document: an array, one row a line, made one by one. */
export function* jsonLines<Row>(
  rows: readonly Row[],
  toJson: (row: Row) => object,
): Generator<string> {
  if (rows.length === 0) yield '[]';
  for (const [index, row] of rows.entries()) {
    const open = index === 0 ? '[' : ' ';
    const close = index === rows.length - 1 ? ']' : ',';
    yield open + visibleJson(toJson(row)) + close;
  }
}

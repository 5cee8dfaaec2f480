import { styleText } from 'node:util';
import { visible } from '../../domain/visible.ts';
import { toJsonLine } from './json.ts';
import { truncate, widthOf } from './text.ts';

export interface Column<Row> {
  readonly name: string;
  /** The cell's text as it came; undefined is shown as `-`. */
  readonly cell: (row: Row) => string | undefined;
  /** What does not fit the terminal may be truncated here. */
  readonly cuttable?: true;
  readonly color?: (row: Row) => Color | undefined;
}

export type Color = 'red' | 'green' | 'yellow' | 'cyan' | 'magenta';

/** How an output shows a table; an `Output` is one. */
export interface TableStyle {
  /** Of the terminal; undefined for a reader that wants everything. */
  readonly width: number | undefined;
  readonly color: boolean;
}

const COLUMN_GAP = '  ';
const MIN_COLUMN_WIDTH = 8;

/** A table that may grow: its columns get wider, never narrower. */
export interface Table<Row> {
  /**
   * The lines of these rows, made one by one, after a header the first time. The last column is not padded: the free
   * text belongs there.
   */
  lines(rows: readonly Row[]): Generator<string>;
}

export function createTable<Row>(columns: readonly Column<Row>[], look: TableStyle): Table<Row> {
  let wanted = columns.map(({ name }) => name.length);
  let hasHeader = false;
  return {
    *lines(rows) {
      wanted = columns.map((column, index) =>
        rows.reduce(
          (widest, row) => Math.max(widest, widthOf(cellText(column, row))),
          wanted[index] ?? 0,
        ),
      );
      const widths = [...wanted];
      if (look.width !== undefined) shrink(widths, columns, look.width);
      if (!hasHeader) {
        yield line(
          columns.map(({ name }) => ({ text: name })),
          widths,
        );
      }
      hasHeader = true;
      for (const row of rows) {
        const cells = columns.map((column) => ({
          text: cellText(column, row),
          color: look.color ? column.color?.(row) : undefined,
        }));
        yield line(cells, widths);
      }
    },
  };
}

/** The lines of a table with a header, made one by one. */
export function tableLines<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  look: TableStyle,
): Generator<string> {
  return createTable(columns, look).lines(rows);
}

function cellText<Row>(column: Column<Row>, row: Row): string {
  const text = column.cell(row);
  return text === undefined ? '-' : visible(text);
}

/** Takes from the widest column that may be truncated until all fit, or nothing more can be taken. */
function shrink(widths: number[], columns: readonly Column<never>[], width: number): void {
  const widthAt = (index: number) => widths[index] ?? 0;
  const cuttable = [...columns.keys()].filter((index) => columns[index]?.cuttable);
  let excess =
    widths.reduce((sum, each) => sum + each, COLUMN_GAP.length * (widths.length - 1)) - width;
  for (; excess > 0; excess -= 1) {
    const widest = Math.max(...cuttable.map(widthAt));
    if (widest <= MIN_COLUMN_WIDTH) return;
    const index = cuttable.find((each) => widthAt(each) === widest) ?? 0;
    widths[index] = widest - 1;
  }
}

interface Cell {
  readonly text: string;
  readonly color?: Color | undefined;
}

function line(cells: readonly Cell[], widths: readonly number[]): string {
  return cells
    .map(({ text, color }, index) => {
      const width = widths[index] ?? 0;
      const shown = truncate(text, width);
      const padding = index === cells.length - 1 ? '' : ' '.repeat(width - widthOf(shown));
      // Whether the stream takes colours is known already.
      const options = { validateStream: false };
      return (color === undefined ? shown : styleText(color, shown, options)) + padding;
    })
    .join(COLUMN_GAP);
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
    yield open + toJsonLine(toJson(row)) + close;
  }
}

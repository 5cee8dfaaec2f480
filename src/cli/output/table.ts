import { styleText } from 'node:util';
import { visible } from '../../domain/visible.ts';
import { toJsonLine } from './json.ts';
import { truncate, widthOf } from './text.ts';

export interface Column<Row> {
  readonly name: string;
  /** Returns the text of the cell, not escaped; undefined is printed as `-`. */
  readonly cell: (row: Row) => string | undefined;
  /** Whether the column may be truncated to fit the terminal. */
  readonly isTruncatable?: true;
  /** Whether the column is left out on a terminal that is too narrow for all columns. */
  readonly isOptional?: true;
  readonly color?: (row: Row) => Color | undefined;
}

export type Color = 'red' | 'green' | 'yellow' | 'cyan' | 'magenta';

/** Style of a printed table. An `Output` fits this type. */
export interface TableStyle {
  /** Width of the terminal in columns; undefined prints everything. */
  readonly width: number | undefined;
  readonly color: boolean;
}

const COLUMN_GAP = '  ';
const MIN_COLUMN_WIDTH = 8;

/** A table to which rows can be added. Its columns get wider, never narrower. */
export interface Table<Row> {
  /**
   * Yields the lines of these rows; the first call yields a header before them. The last column, which is for free text,
   * is not padded.
   */
  lines(rows: readonly Row[]): Generator<string>;
}

export function createTable<Row>(all: readonly Column<Row>[], style: TableStyle): Table<Row> {
  const naturalWidths = new Map(all.map((column) => [column, column.name.length]));
  let columns: readonly Column<Row>[] | undefined;
  return {
    *lines(rows) {
      for (const [column, width] of naturalWidths) {
        const widen = (widest: number, row: Row) =>
          Math.max(widest, widthOf(cellText(column, row)));
        naturalWidths.set(column, rows.reduce(widen, width));
      }
      const isFirst = columns === undefined;
      columns ??= fitting(naturalWidths, style.width);
      const widths = columns.map((column) => naturalWidths.get(column) ?? 0);
      if (style.width !== undefined) shrink(widths, columns, style.width);
      if (isFirst) {
        yield line(
          columns.map(({ name }) => ({ text: name })),
          widths,
        );
      }
      for (const row of rows) {
        const cells = columns.map((column) => ({
          text: cellText(column, row),
          color: style.color ? column.color?.(row) : undefined,
        }));
        yield line(cells, widths);
      }
    },
  };
}

/** Yields the lines of a table with a header. */
export function tableLines<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  style: TableStyle,
): Generator<string> {
  return createTable(columns, style).lines(rows);
}

function cellText<Row>(column: Column<Row>, row: Row): string {
  const text = column.cell(row);
  return text === undefined ? '-' : visible(text);
}

/** Returns all columns if they fit the terminal once they are truncated, otherwise those that are not optional. */
function fitting<Row>(
  widths: ReadonlyMap<Column<Row>, number>,
  available: number = Infinity,
): readonly Column<Row>[] {
  const all = [...widths.keys()];
  const minWidths = Array.from(widths, ([{ isTruncatable }, width]) =>
    isTruncatable ? Math.min(width, MIN_COLUMN_WIDTH) : width,
  );
  return tableWidth(minWidths) <= available ? all : all.filter(({ isOptional }) => !isOptional);
}

function tableWidth(widths: readonly number[]): number {
  return widths.reduce((sum, each) => sum + each, COLUMN_GAP.length * (widths.length - 1));
}

/** Shortens the widest column that may be truncated, until the table fits or all of them are at their minimum. */
function shrink(widths: number[], columns: readonly Column<never>[], width: number): void {
  const widthAt = (index: number) => widths[index] ?? 0;
  const truncatable = [...columns.keys()].filter((index) => columns[index]?.isTruncatable);
  let excess = tableWidth(widths) - width;
  for (; excess > 0; excess -= 1) {
    const widest = Math.max(...truncatable.map(widthAt));
    if (widest <= MIN_COLUMN_WIDTH) return;
    const index = truncatable.find((each) => widthAt(each) === widest) ?? 0;
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
      // The caller has already decided whether to use colours.
      const options = { validateStream: false };
      return (color === undefined ? shown : styleText(color, shown, options)) + padding;
    })
    .join(COLUMN_GAP);
}

/** Yields the lines of one JSON document: an array with one row a line. */
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

import { styleText } from 'node:util';
import type { Status } from '../domain/status.ts';
import { visible, visibleJson } from '../domain/visible.ts';

/** A column of a table on a terminal. A cell is not escaped; undefined is printed as `-`. */
export type Column<Row> = readonly [
  name: string,
  cell: (row: Row) => string | undefined,
  more?: {
    /** Left out on a terminal that is too narrow for all columns. */
    readonly isOptional?: true;
    readonly color?: (row: Row) => Color | undefined;
  },
];

type Color = 'red' | 'green' | 'yellow' | 'cyan' | 'magenta';

/** Style of a printed table. An `Output` fits this type. */
interface TableStyle {
  /** Width of the terminal in columns; undefined prints everything. */
  readonly width: number | undefined;
  readonly color: boolean;
}

const GAP = '  ';
/** Width that is left to the last column, however narrow the terminal is. */
const MIN_LAST_WIDTH = 8;

/**
 * Creates the function that returns the lines of some rows, at its first call below a header. Columns get wider, never
 * narrower. The last one, which is for free text, is not padded but cut at the edge of the terminal.
 */
export function createTable<Row>(
  all: readonly Column<Row>[],
  { width: available = Infinity, color }: TableStyle,
): (rows: readonly Row[]) => string {
  const widths = new Map(all.map((column) => [column, column[0].length]));
  const widthOfAll = (columns: readonly Column<Row>[]) =>
    columns.reduce((sum, column) => sum + widthIn(column) + GAP.length, 0);
  const widthIn = (column: Column<Row>) => widths.get(column) ?? 0;
  let columns: readonly Column<Row>[] | undefined;

  function line(shown: readonly Column<Row>[], show: (column: Column<Row>) => Cell): string {
    const padded = shown.slice(0, -1).map((column) => {
      const cell = show(column);
      return paint(cell) + ' '.repeat(widthIn(column) - widthOf(cell.text));
    });
    const room = Math.max(MIN_LAST_WIDTH, available - widthOfAll(shown.slice(0, -1)));
    const last = shown.slice(-1).map(show);
    const cut = last.map((cell) => paint({ ...cell, text: truncate(cell.text, room) }));
    return `${[...padded, ...cut].join(GAP)}\n`;
  }

  return (rows) => {
    for (const column of all) {
      const widen = (width: number, row: Row) => Math.max(width, widthOf(textOf(column, row)));
      widths.set(column, rows.reduce(widen, widthIn(column)));
    }
    const lines: string[] = [];
    if (columns === undefined) {
      const least = widthOfAll(all.slice(0, -1)) + MIN_LAST_WIDTH;
      columns = least <= available ? all : all.filter(([, , more]) => !more?.isOptional);
      lines.push(line(columns, ([name]) => ({ text: name })));
    }
    for (const row of rows) {
      lines.push(
        line(columns, (column) => ({
          text: textOf(column, row),
          color: color ? column[2]?.color?.(row) : undefined,
        })),
      );
    }
    return lines.join('');
  };
}

interface Cell {
  readonly text: string;
  readonly color?: Color | undefined;
}

function textOf<Row>([, cell]: Column<Row>, row: Row): string {
  const text = cell(row);
  return text === undefined ? '-' : visible(text);
}

function paint({ text, color }: Cell): string {
  // The caller has already decided whether to use colours.
  return color === undefined ? text : styleText(color, text, { validateStream: false });
}

const STATUS_COLORS: Readonly<Record<Status, Color | undefined>> = {
  PENDING: 'yellow',
  RUNNING: 'cyan',
  COMPLETED: 'green',
  FAILED: 'red',
  UNKNOWN: 'magenta',
  NONE: undefined,
};

/** Returns the colour in which a status is printed. */
export function statusColor(status: Status): Color | undefined {
  return STATUS_COLORS[status];
}

const PLAIN = /^[ -~]*$/;
const NO_WIDTH = /^(?:\p{Mn}|\p{Me}|\u200c|\u200d)$/v;
const WIDE =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]|\p{Emoji_Presentation})$/v;

/** Returns the approximate number of terminal columns of a text. East Asian characters and emoji take two. */
function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** Shortens a text to at most `width` columns (1 or more). A shortened text ends with `…`. */
export function truncate(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let left = width - 1;
  for (const character of text) {
    left -= characterWidth(character);
    if (left < 0) break;
    kept += character;
  }
  return `${kept}…`;
}

function characterWidth(character: string): number {
  if (NO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Returns a value as one line of JSON that is safe on a terminal. */
export function toJsonLine(value: object): string {
  return `${visibleJson(JSON.stringify(value))}\n`;
}

/** Returns one JSON document: an array with one row a line. */
export function toJsonDocument(rows: readonly object[]): string {
  return `[${rows.map((row) => toJsonLine(row).trimEnd()).join(',\n ')}]\n`;
}

/** What a row of a CSV file has by column; a cell that is null or undefined is left empty. */
export type Cells = Readonly<Record<string, unknown>>;

/** Paragraph of the help of each command that writes CSV. */
export const CSV_HELP = `CSV is for spreadsheets: UTF-8 with a byte order mark. Line breaks and invisible characters are escapes such as
\\u001b. A text that begins with = + - or @, also full-width, has an apostrophe before it, so that it is no formula.`;

/** Returns the byte order mark, without which Excel does not read the file as UTF-8, and the names of the columns. */
export function csvHeader(columns: string): string {
  return `\u{feff}${columns}\r\n`;
}

/** Returns the rows as lines of CSV. */
export function csvRows(rows: readonly Cells[], columns: string): string {
  const names = columns.split(',');
  return rows.map((row) => csvLine(names.map((name) => row[name] ?? ''))).join('');
}

/** A text that a spreadsheet could run as a formula (OWASP, CSV injection). Tabs and line breaks are escaped before. */
const FORMULA = /^[=+\-@＝＋－＠﹦﹢﹣﹫]/;

/** Returns one line of CSV (RFC 4180), including its line break. */
function csvLine(cells: readonly unknown[]): string {
  const written = cells.map((cell) => {
    if (typeof cell === 'number') return String(cell);
    const text = visible(String(cell)).replace(FORMULA, "'$&");
    return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${written.join(',')}\r\n`;
}

import { visible } from '../../domain/visible.ts';

/**
 * Places where a spreadsheet could read a formula: at the beginning of a cell, or after `;` or `|`, which some use as
 * separators, with or without spaces and quotes. Some spreadsheets accept full-width and small forms of the signs.
 */
const FORMULA = /(?<=^|[;\|])(?=["\s\u200c\u200d]*[=+\-@＝＋－＠﹦﹢﹣﹫])/gv;

/** Column of a CSV file. */
export interface CsvColumn<Row> {
  readonly name: string;
  /** Returns the value of a row; undefined leaves the cell empty. */
  readonly cell: (row: Row) => string | number | undefined;
}

/** How the commands write rows as CSV. */
export interface Csv<Row> {
  /** The byte order mark and the names of the columns. */
  readonly header: string;
  readonly line: (row: Row) => string;
}

/** Paragraph of the help of each command that writes CSV. */
export const CSV_HELP = `CSV is for spreadsheets: UTF-8 with a byte order mark. Line breaks, control characters and invisible characters are
written as escapes such as \\u001b. An apostrophe is put before a sign that could start a formula (= + - @, also
full-width) at the beginning of a text or after ; or |, even if spaces or quotes come first.`;

export function createCsv<Row>(columns: readonly CsvColumn<Row>[]): Csv<Row> {
  return {
    // Without a byte order mark, Excel does not read the file as UTF-8.
    header: `\u{feff}${csvLine(columns.map(({ name }) => name))}`,
    line: (row) => csvLine(columns.map(({ cell }) => cell(row) ?? '')),
  };
}

/**
 * Returns one line of CSV (RFC 4180), including its line break. Line breaks and characters that are unsafe on a terminal
 * are escaped, and an apostrophe is put before each text that a spreadsheet could run as a formula.
 */
export function csvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(toCell).join(',')}\r\n`;
}

function toCell(cell: string | number): string {
  if (typeof cell === 'number') return String(cell);
  const text = visible(cell).replace(FORMULA, "'");
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

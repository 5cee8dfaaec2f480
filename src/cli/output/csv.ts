import { visible } from '../../domain/visible.ts';

/**
 * Places where a spreadsheet could read a formula: at the beginning of a cell, or after `;` or `|`, which some use as
 * separators, with or without spaces and quotes. Some spreadsheets accept full-width and small forms of the signs.
 */
const FORMULA = /(?<=^|[;\|])(?=["\s\u200c\u200d]*[=+\-@＝＋－＠﹦﹢﹣﹫])/gv;

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

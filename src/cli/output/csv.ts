import { visible } from '../../domain/visible.ts';

/**
 * Where a spreadsheet could take what follows for a formula: at the beginning of a cell, or of what is a cell where
 * `;` or `|` separates them, behind spaces and quotes. Some take the full-width and small forms for the signs, too.
 */
const FORMULA = /(?<=^|[;\|])(?=["\s\u200c\u200d]*[=+\-@＝＋－＠﹦﹢﹣﹫])/gv;

/**
 * One line of CSV (RFC 4180, the line's end included). What is unsafe on a terminal, and ends of lines, are shown as
 * escapes, and an apostrophe stands before whatever a spreadsheet could run as a formula.
 */
export function csvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(toCell).join(',')}\r\n`;
}

function toCell(cell: string | number): string {
  if (typeof cell === 'number') return String(cell);
  const text = visible(cell).replace(FORMULA, "'");
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

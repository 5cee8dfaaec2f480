import type { Figures, Result } from '../result.ts';
import { number, sizeOf, verdictsOn } from './text.ts';

const COLUMNS: readonly (readonly [name: string, metric: keyof Figures, unit: number])[] = [
  ['CPU ms', 'cpuMs', 1],
  ['wall ms', 'wallMs', 1],
  ['block ms', 'blockMs', 1],
  ['worst ms', 'worstBlockMs', 1],
  ['peak MB', 'peakBytes', 1e6],
  ['rest MB', 'restBytes', 1e6],
];

/** Formats one result for a terminal: the cost of each contender, and whether it meets the goals. */
export function tableOf(result: Result): string {
  const columns = COLUMNS.filter(([, metric]) =>
    Object.values(result.figures).some((figures) => figures[metric] !== undefined),
  );
  const rows = Object.entries(result.figures).map(([name, figures]) =>
    line(
      name,
      columns.map(([, metric, unit]) => {
        const value = figures[metric];
        return value === undefined ? '' : number(value / unit);
      }),
    ),
  );
  const verdicts = verdictsOn(result).map(
    ({ met, what, reached, goal }) =>
      `  ${met ? 'met' : 'MISSED'}: ${what} ${reached}, goal ${goal}`,
  );
  return [
    `\n${result.row}: ${result.title}; ${sizeOf(result)}`,
    line(
      '',
      columns.map(([name]) => name),
    ),
    ...rows,
    ...verdicts,
  ].join('\n');
}

function line(name: string, cells: readonly string[]): string {
  return `  ${name.padEnd(18)}${cells.map((cell) => cell.padStart(10)).join('')}`;
}

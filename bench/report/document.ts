import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Machine } from '../machine.ts';
import type { Report, Result } from '../result.ts';
import { growth } from '../statistics.ts';
import { plot, type Line } from './plot.ts';
import { number, sizeOf, verdictsOn } from './text.ts';

const TEMPLATE = join(import.meta.dirname, 'performance.md');

/** Rows whose size is the number of prompts, not of projects. */
const BY_PROMPTS = ['unchanged', 'changed', 'first'];
const BY_PROJECTS = ['many', 'many-first'];

/** Returns `docs/performance.md`: the template with the figures in their places. */
export async function documentOf(now: Report, before: Report): Promise<string> {
  const places: Readonly<Record<string, string>> = {
    machine: machineText(now.machine, now.runs),
    'machine before': machineText(before.machine, before.runs),
    goals: goalsTable(now.results, before.results),
    costs: costTables(now.results),
    growth: growthTable(now.results),
  };
  const template = await readFile(TEMPLATE, 'utf8');
  return template.replaceAll(/\{\{(.+?)\}\}/g, (_, name: string) => {
    const text = places[name];
    if (text === undefined) throw new Error(`${TEMPLATE} has a place ${name} that nothing fills`);
    return text;
  });
}

export function plotByPrompts({ results }: Report): string {
  const panels = BY_PROMPTS.map((row) => panelOf(results, row, ({ prompts }) => prompts));
  return plot(panels, 'prompts in the listing', 'CPU ms per poll');
}

export function plotByProjects({ results }: Report): string {
  const panels = BY_PROJECTS.map((row) => panelOf(results, row, ({ projects }) => projects));
  return plot(panels, 'projects of 100 prompts', 'CPU ms for a poll of each');
}

function panelOf(results: readonly Result[], row: string, sizeAt: (result: Result) => number) {
  const ofRow = plainOf(results, row);
  return { title: ofRow[0]?.title ?? row, lines: linesOf(ofRow, sizeAt) };
}

function plainOf(results: readonly Result[], row: string): readonly Result[] {
  return results.filter((result) => result.row === row && result.encoding === 'identity');
}

/** Returns CPU time by size, one line for each contender. */
function linesOf(results: readonly Result[], sizeAt: (result: Result) => number): readonly Line[] {
  return Object.keys(results[0]?.figures ?? {}).map((name) => ({
    name,
    points: results.flatMap((result) => {
      const cpuMs = result.figures[name]?.cpuMs;
      return cpuMs === undefined ? [] : [[sizeAt(result), cpuMs] as const];
    }),
  }));
}

function machineText(machine: Machine, runs: number): string {
  const { cpu, cores, memoryBytes, kernel, node, sqlite, load } = machine;
  const memory = `${Math.round(memoryBytes / 2 ** 30)} GiB`;
  return `${cpu}, ${cores} cores, ${memory}, Linux ${kernel}, Node ${node}, SQLite ${sqlite}, ${runs} ${runs === 1 ? 'run' : 'runs'}, load ${load.toFixed(1)} at the start`;
}

/** Shows each row at its largest size without gzip. */
function goalsTable(now: readonly Result[], before: readonly Result[]): string {
  const rows = [...new Set(now.map(({ row }) => row))];
  const lines = rows.flatMap((row) => {
    const result = plainOf(now, row).at(-1);
    if (result === undefined) return [];
    const old = before.find(
      (other) =>
        other.row === row &&
        other.projects === result.projects &&
        other.prompts === result.prompts &&
        other.encoding === result.encoding,
    );
    const oldVerdicts = old === undefined ? [] : verdictsOn(old);
    return verdictsOn(result).map(({ what, goal, reached, met }, index) => [
      index === 0 ? `\`${row}\`: ${result.title}; ${sizeOf(result)}` : '',
      what,
      goal,
      oldVerdicts[index]?.reached ?? '',
      met ? `${reached}, met` : `**${reached}, missed**`,
    ]);
  });
  return markdownTable(['work', 'figure', 'goal', 'before', 'now'], lines);
}

function costTables(results: readonly Result[]): string {
  const rows = Map.groupBy(
    results.filter(({ figures }) => 'evalwatch' in figures),
    ({ row }) => row,
  );
  const tables = [...rows].map(([row, [first, ...others]]) => {
    if (first === undefined) return '';
    const names = Object.keys(first.figures).filter((name) => first.figures[name]?.cpuMs);
    const lines = [first, ...others].map((result) => {
      const { wallMs, blockMs, peakBytes } = result.figures['evalwatch'] ?? {};
      return [
        sizeOf(result),
        ...names.map((name) => cell(result.figures[name]?.cpuMs)),
        cell(wallMs),
        cell(blockMs),
        cell(peakBytes, 1e6),
      ];
    });
    const head = ['size', ...names, 'wall ms', 'longest block ms', 'peak MB'];
    return `### \`${row}\`: ${first.title}\n\n${markdownTable(head, lines)}`;
  });
  return tables.join('\n\n');
}

function growthTable(results: readonly Result[]): string {
  const names = ['download', 'sha256', 'parse', 'insert', 'evalwatch', 'node', 'python'];
  const sizes = [
    ...BY_PROMPTS.map((row) => [row, ({ prompts }: Result) => prompts] as const),
    ...BY_PROJECTS.map((row) => [row, ({ projects }: Result) => projects] as const),
  ];
  const lines = sizes.map(([row, sizeAt]) => {
    const found = new Map(
      linesOf(plainOf(results, row), sizeAt).map(({ name, points }) => [name, points]),
    );
    const exponents = names.map((name) => {
      const points = found.get(name) ?? [];
      return points.length < 2 ? '' : growth(points).toFixed(2);
    });
    return [`\`${row}\``, ...exponents];
  });
  return markdownTable(['row', ...names], lines);
}

function cell(value: number | undefined, unit = 1): string {
  return value === undefined ? '' : number(value / unit);
}

function markdownTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

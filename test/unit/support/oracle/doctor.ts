import { differences } from '../../../support/oracle.ts';
import type { LogLine, Observation, TransitionRow } from '../../../support/oracle/observation.ts';
import { RIGHT, RUN, samplesOf, told } from './history.ts';

export type Change = Partial<Observation>;

/** Returns what the oracle reports of the right history with these changes. */
export function verdict(...changes: readonly Change[]): string {
  return differences(Object.assign({}, RIGHT, ...changes)).join('\n');
}

/** Changes the transitions, with the totals and lines that belong to them. */
export function transitions(
  change: (rows: readonly TransitionRow[]) => readonly TransitionRow[],
): Change {
  const rows = change(RIGHT.transitions);
  const others = RUN.lines.filter(({ event }) => event?.endsWith('.transition') !== true);
  const runs = [{ ...RUN, lines: [...others, ...rows.map(told)] }];
  return { transitions: rows, samples: samplesOf(rows), runs };
}

export function lines(change: (lines: readonly LogLine[]) => readonly LogLine[]): Change {
  return { runs: [{ ...RUN, lines: change(RUN.lines) }] };
}

/** Changes or removes a series. */
export function sample(series: string, value: number | undefined): Change {
  const samples = new Map(RIGHT.samples);
  if (value === undefined) samples.delete(series);
  else samples.set(series, value);
  return { samples };
}

/** Changes the row with this id, or every row. */
export function edited<Row extends { readonly transition_id?: number }>(
  rows: readonly Row[],
  fields: Partial<Row>,
  id?: number,
): readonly Row[] {
  return rows.map((row) =>
    id === undefined || row.transition_id === id ? { ...row, ...fields } : row,
  );
}

export function without<Row extends { readonly transition_id?: number }>(
  rows: readonly Row[],
  id: number,
): readonly Row[] {
  return rows.filter((row) => row.transition_id !== id);
}

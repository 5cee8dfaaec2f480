import { type RowOptions, SOURCE } from '../row.ts';

/** Extent of the proof: enough for `npm test`, enough to notice a deliberate mistake, or all of it. */
export type Form = 'tests' | 'short' | 'long';

export function formOf({ short, source = SOURCE }: Pick<RowOptions, 'short' | 'source'>): Form {
  if (!short) return 'long';
  return source === SOURCE ? 'tests' : 'short';
}

import { visibleJson } from '../../domain/visible.ts';

/** Returns a value as one line of JSON that is safe on a terminal. */
export function toJsonLine(value: object): string {
  return visibleJson(JSON.stringify(value));
}

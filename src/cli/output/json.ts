import { visibleJson } from '../../domain/visible.ts';

/** A value as JSON on one line, safe on a terminal. */
export function toJsonLine(value: object): string {
  return visibleJson(JSON.stringify(value));
}

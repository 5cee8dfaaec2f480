import type { Status } from '../../domain/status.ts';
import type { Color } from './table.ts';

const COLORS: Readonly<Record<Status, Color | undefined>> = {
  PENDING: 'yellow',
  RUNNING: 'cyan',
  COMPLETED: 'green',
  FAILED: 'red',
  UNKNOWN: 'magenta',
  NONE: undefined,
};

/** Returns the colour in which a status is printed. */
export function statusColor(status: Status): Color | undefined {
  return COLORS[status];
}

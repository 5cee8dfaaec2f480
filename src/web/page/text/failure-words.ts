import { DAY_MS, type ProjectView, type RecentFailures } from '../model/overview-model.ts';
import { duration } from './time.ts';
import { counted } from './words.ts';

/** Adds up the failures of these projects; undefined while the store cannot be read. */
export function allFailures(views: readonly ProjectView[]): RecentFailures | undefined {
  const each = views.map(({ failures }) => failures);
  if (each.includes(undefined)) return undefined;
  return {
    count: each.reduce((sum, failures) => sum + (failures?.count ?? 0), 0),
    isCapped: each.some((failures) => failures?.isCapped),
  };
}

/** `2 failures in the last 24 hours`; a shorter period if the retention of the store is shorter. */
export function failuresText(failures: RecentFailures, retentionMs: number): string {
  return `${failureCount(failures)} in the last ${dayText(retentionMs)}`;
}

/** `24 hours`, or the retention of the store if that is shorter. */
export function dayText(retentionMs: number): string {
  return retentionMs < DAY_MS ? duration(retentionMs) : '24 hours';
}

/** `2 failures`, `at least 100,000 failures`. */
export function failureCount({ count, isCapped }: RecentFailures): string {
  return `${isCapped ? 'at least ' : ''}${counted(count, 'failure')}`;
}

import { lastRun, parseSchedule } from './cron.ts';

/** When a project is not polled, or is polled without alerts and messages (docs/specification.md#pauses). */
export interface Pauses {
  /** Whether it is not polled until the configuration says otherwise. */
  readonly isPaused: boolean;
  readonly maintenance: readonly Maintenance[];
}

/** Times of maintenance. */
export interface Maintenance {
  /** A valid cron expression: its runs are the begins. */
  readonly cron: string;
  /** A valid IANA time zone. */
  readonly timezone: string;
  readonly durationMs: number;
  readonly polls: 'stop' | 'continue';
}

/** A pause that lasts. */
export interface Pause {
  /** Epoch ms; undefined if only the configuration ends it. */
  readonly until: number | undefined;
  readonly polls: Maintenance['polls'];
}

/** Maximum number of times of maintenance that follow each other as one. */
const MAX_CHAINED = 1000;

/** Returns the pause at this time, epoch ms; undefined if there is none. Of two at once, one without polls. */
export function pauseAt(pauses: Pauses, at: number): Pause | undefined {
  if (pauses.isPaused) return { until: undefined, polls: 'stop' };
  for (const polls of ['stop', 'continue'] as const) {
    const until = lastEnd(pauses, polls, at, at);
    if (until !== undefined) return { until, polls };
  }
  return undefined;
}

/** Returns the pause at this time, epoch ms, and otherwise the next one, with its begin; undefined if there is none. */
export function nextPause(
  pauses: Pauses,
  at: number,
): (Pause & { readonly from: number | undefined }) | undefined {
  const current = pauseAt(pauses, at);
  if (current !== undefined) return { ...current, from: undefined };
  const begins = pauses.maintenance.map(({ cron, timezone }) =>
    parseSchedule(cron, timezone).nextAfter(at),
  );
  const from = Math.min(...begins);
  const pause = begins.length === 0 ? undefined : pauseAt(pauses, from);
  return pause && { ...pause, from };
}

/**
 * Returns when the last maintenance with these polls ends, of those that last at one time or begin between it and another, epoch
 * ms; undefined if there is none.
 */
export function lastEnd(
  { maintenance }: Pauses,
  polls: Maintenance['polls'],
  from: number,
  upTo: number,
): number | undefined {
  let last: number | undefined;
  for (const each of maintenance) {
    const end = each.polls === polls ? endOf(each, from, upTo) : undefined;
    if (end !== undefined) last = Math.max(end, last ?? 0);
  }
  return last;
}

/** Returns the end of the last maintenance that lasts at one time or begins between it and another; undefined if none does. */
function endOf(
  { cron, timezone, durationMs }: Maintenance,
  from: number,
  upTo: number,
): number | undefined {
  const schedule = parseSchedule(cron, timezone);
  let start = lastRun(schedule, from - durationMs, upTo);
  if (start === undefined) return undefined;
  for (let count = 0; count < MAX_CHAINED; count += 1) {
    const next = schedule.nextAfter(start);
    if (next > start + durationMs) break;
    start = next;
  }
  return start + durationMs;
}

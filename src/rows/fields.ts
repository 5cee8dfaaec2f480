import type { FinishedPoll } from '../monitor/events.ts';
import type { FailureRow, StatusRow, TransitionRow } from '../monitor/ports/store.ts';

// Rows as commands and API show them, with the field names of the log (docs/specification.md#rows).

export function statusFields(row: StatusRow): object {
  return {
    project: row.project,
    prompt_id: row.promptId,
    prompt_name: row.promptName ?? null,
    status: row.status,
    status_raw: row.statusRaw ?? null,
    since: isoTime(row.since),
    missing: row.missing,
  };
}

export function transitionFields(row: TransitionRow): object {
  return {
    transition_id: row.transitionId,
    time: isoTime(row.at),
    project: row.project,
    [`${row.kind}_id`]: row.id,
    from: row.from,
    to: row.to,
  };
}

export function failureFields({
  transitionId,
  at,
  project,
  promptId,
  settlement,
}: FailureRow): object {
  return {
    transition_id: transitionId,
    time: isoTime(at),
    project,
    prompt_id: promptId,
    error_info: settlement?.errorInfo ?? null,
    error_msg_truncated: settlement?.errorInfo !== undefined && settlement.errorMsgTruncated,
    reason: settlement?.reason ?? null,
    settled: settlement !== undefined,
  };
}

/** How a poll went, as commands and API show it. */
export interface PollResult {
  readonly project: string;
  /** Why it failed; undefined if it succeeded. */
  readonly reason: string | undefined;
  readonly prompts: number | undefined;
  readonly transitions: number;
  /** Undefined if the poll did not finish. */
  readonly durationMs: number | undefined;
}

export function pollResult(poll: FinishedPoll): PollResult {
  const { project, failure, prompts, transitions, durationMs } = poll;
  return { project, reason: failure?.reason, prompts, transitions, durationMs };
}

export function pollFields(poll: PollResult): object {
  return {
    project: poll.project,
    ok: poll.reason === undefined,
    reason: poll.reason ?? null,
    prompts: poll.prompts ?? null,
    transitions: poll.transitions,
    duration_ms: poll.durationMs === undefined ? null : Math.round(poll.durationMs),
  };
}

/** The first and the last time that ISO 8601 has four digits for the year for. */
const MIN_TIME = Date.parse('0000-01-01T00:00:00.000Z');
const MAX_TIME = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * ISO 8601 UTC with milliseconds. A time beyond the years 0 to 9999, which only a damaged or changed store has
 * (`store check` finds it), becomes the nearest one, so that its row can be shown.
 */
export function isoTime(ms: number): string {
  return new Date(Math.min(Math.max(ms, MIN_TIME), MAX_TIME)).toISOString();
}

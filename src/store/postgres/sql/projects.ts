import type { PollHealth } from '../../../monitor/ports/store.ts';
import { toHealthColumns } from '../../rows.ts';
import type { Statement } from '../database.ts';

/** Health after a poll that changed nothing else. */
export interface WaitingHealth {
  /** Token of the project when its listing was read. With another one the unchanged listing is another one. */
  readonly token: string;
  readonly health: PollHealth;
}

/** Writes the health of polls that changed nothing. Returns the ids of projects that still have the given token. */
export const FLUSH: Statement = {
  name: 'flush_health',
  text: `
UPDATE evalwatch.project p
SET up = h.up, consecutive_failures = h.consecutive_failures, reason = h.reason,
  last_poll_at = h.last_poll_at, last_success_at = h.last_success_at, steady_since = h.steady_since
FROM json_to_recordset($1) AS h(id text, token uuid, up boolean, consecutive_failures integer,
  reason text, last_poll_at bigint, last_success_at bigint, steady_since bigint)
WHERE p.id = h.id AND p.token = h.token
RETURNING p.id`,
};

export function flushInput(waiting: ReadonlyMap<string, WaitingHealth>): string {
  const rows = Array.from(waiting, ([project, { token, health }]) => ({
    id: project,
    token,
    ...toHealthColumns(health),
  }));
  return JSON.stringify(rows);
}

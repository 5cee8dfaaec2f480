import { NO_ERROR_INFO_REASONS } from '../../domain/failure.ts';
import { LAST_BUCKET } from '../../domain/limits.ts';
import { DATASET_STATUSES, KINDS, UNFINISHED_STATUSES } from '../../domain/status.ts';
import { POLL_FAILURE_REASONS } from '../../monitor/errors.ts';

const isNoTime = (column: string) => `${column} NOT BETWEEN 0 AND 8640000000000000`;
const isNoCount = (column: string) => `${column} NOT BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER}`;
const isNoFlag = (column: string) => `${column} NOT IN (0, 1)`;
/** The limit is far above the length of any stored text. */
const isTooLong = (column: string) => `octet_length(${column}) > 65536`;
const isNoneOf = (column: string, words: readonly string[]) =>
  `${column} NOT IN (${quoted(words)})`;

/** SQL condition of an impossible value, by column. */
type Conditions = Readonly<Record<string, string>>;

/** Builds a query that selects a text for each row of a table with an impossible value. */
function impossible(from: string, place: string, conditions: Conditions): string {
  const cases = Object.entries(conditions).map(
    ([name, isWrong]) => `WHEN ${isWrong} THEN '${name}'`,
  );
  return `SELECT place || ': ' || wrong FROM
    (SELECT ${place} AS place, CASE ${cases.join(' ')} END AS wrong FROM ${from}) WHERE wrong IS NOT NULL`;
}

function columns(isWrong: (column: string) => string, ...names: readonly string[]): Conditions {
  return Object.fromEntries(names.map((name) => [name, isWrong(name)]));
}

const ORIGINS = ['NEW', ...DATASET_STATUSES];
/** Selects a text for each row with a value that evalwatch cannot have written. */
export const IMPOSSIBLE_VALUES: string = [
  impossible('project', "'project ' || project_key", {
    ...columns(isTooLong, 'id'),
    ...columns(
      isNoTime,
      'configured_at',
      'removed_at',
      'last_poll_at',
      'last_success_at',
      'steady_since',
    ),
    ...columns(isNoCount, 'version', 'consecutive_failures'),
    ...columns(isNoFlag, 'up'),
    reason: isNoneOf('reason', POLL_FAILURE_REASONS),
  }),
  impossible('listing', "'listing ' || listing_key", {
    kind: isNoneOf('kind', KINDS),
    ...columns(isNoFlag, 'baselined'),
    ...columns(isNoCount, 'gone_total'),
    ...columns(isNoTime, 'last_failure_at'),
  }),
  impossible('record', "'record ' || quote(substr(id, 1, 600))", {
    ...columns(isTooLong, 'id', 'status_raw', 'name', 'timestamp'),
    ...columns(isNoTime, 'since'),
    ...columns(isNoCount, 'missing'),
    ...columns(isNoFlag, 'gone'),
  }),
  impossible('transition', "'transition ' || transition_id", {
    ...columns(isNoCount, 'transition_id'),
    ...columns(isTooLong, 'record_id', 'record_name'),
    ...columns(isNoTime, 'at'),
    from_status: isNoneOf('from_status', ORIGINS),
    to_status: isNoneOf('to_status', DATASET_STATUSES),
  }),
  impossible('transition_total', "'total of listing ' || listing_key", {
    ...columns(isNoCount, 'count'),
    from_status: isNoneOf('from_status', ORIGINS),
    to_status: isNoneOf('to_status', DATASET_STATUSES),
  }),
  impossible('prompt_duration', "'duration of listing ' || listing_key", {
    status: isNoneOf('status', UNFINISHED_STATUSES),
    ...columns(isNoCount, 'day', 'count'),
    bucket: `bucket NOT BETWEEN 0 AND ${LAST_BUCKET}`,
  }),
  impossible('error_total', "'error total of listing ' || listing_key", {
    ...columns(isTooLong, 'label'),
    ...columns(isNoCount, 'count'),
    ...columns(isNoTime, 'first_seen_at', 'last_seen_at'),
  }),
  impossible('failure', "'failure ' || transition_id", {
    ...columns(isNoCount, 'tries', 'useless_tries'),
    ...columns(isNoTime, 'first_try_at', 'last_try_at', 'next_try_at', 'settled_at'),
    ...columns(isTooLong, 'error_id', 'error_msg', 'cause', 'cause_id'),
    ...columns(isNoFlag, 'error_msg_truncated'),
    reason: isNoneOf('reason', NO_ERROR_INFO_REASONS),
  }),
  impossible('sqlite_sequence', "'numbers of ' || name", columns(isNoCount, 'seq')),
].join(' UNION ALL ');

/** Returns words as a list in SQL. */
export function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(', ');
}

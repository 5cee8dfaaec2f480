import { DatabaseError } from 'pg';
import { isMistake, StoreError, type StoreFailureReason } from '../../monitor/errors.ts';

/** Reasons that a server can cause. */
type ServerReason = Exclude<StoreFailureReason, 'replaced'>;

/** Reason by SQLSTATE or its class; absent classes are `other`. */
const REASONS: ReadonlyMap<string, ServerReason> = new Map([
  ['53100', 'full'],
  ['53', 'busy'],
  ['40', 'busy'],
  ['55', 'busy'],
  ['57014', 'busy'],
  ['08', 'io'],
  ['57', 'io'],
  ['58', 'io'],
  ['25006', 'io'],
  ['XX001', 'corrupt'],
  ['XX002', 'corrupt'],
]);

const TEXTS: Readonly<Record<ServerReason, string>> = {
  full: 'no space is left for the store',
  io: 'the database of store.postgres_url_file or _env cannot be reached',
  busy: 'the database of store.postgres_url_file or _env is busy: it has too many connections, or a lock or statement took too long',
  corrupt: 'the database of store.postgres_url_file or _env is damaged; restore a backup',
  other: 'the database of store.postgres_url_file or _env refused',
};

/** A shorter text occurs in ordinary ones too, and what is left around its redactions would spell it out. */
const MIN_SECRET_LENGTH = 8;

/** PgBouncer refuses the limits that each connection requests (servers.ts), unless it is configured to ignore them. */
const LIMITS_REFUSED =
  'the pooler before the database of store.postgres_url_file or _env refuses connections: set its ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout';

/**
 * Turns an error of the server or of the connection to it into a {@link StoreError}. The message has the code of a system
 * error, because its text names the server, and other texts without any longer part of the connection string. There is no
 * `cause`, which would show the rest.
 * @throws the error itself if it is a bug
 */
export function toStoreError(error: unknown, secrets: readonly string[]): StoreError {
  if (error instanceof StoreError) return error;
  if (!(error instanceof Error) || isMistake(error)) throw error;
  const code = codeOf(error);
  if (error instanceof DatabaseError) {
    if (code === '08P01' && error.message.startsWith('unsupported startup parameter')) {
      return new StoreError('other', LIMITS_REFUSED);
    }
    const reason = REASONS.get(code) ?? REASONS.get(code.slice(0, 2)) ?? 'other';
    return new StoreError(reason, `${TEXTS[reason]} (${code}: ${scrub(error.message, secrets)})`);
  }
  const what = code === '' ? scrub(error.message, secrets) : code;
  return new StoreError('io', `${TEXTS.io} (${what})`);
}

/** Whether the statement may have been done: the server did not answer, or does not know either (40003). */
export function isOutcomeUnknown(error: unknown): boolean {
  return !(error instanceof DatabaseError) || /^(?:08|57P0|40003)/.test(codeOf(error));
}

/** Whether the server says that it takes no writes, or soon will take none. */
export function isNoPrimary(error: unknown): boolean {
  return error instanceof DatabaseError && /^(?:25006|57P0[1-3])$/.test(codeOf(error));
}

/** Whether two statements collided, so that the failed one can be repeated as it is. */
export function isCollision(error: unknown): boolean {
  const code = codeOf(error);
  return error instanceof DatabaseError && code.startsWith('40') && code !== '40003';
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function scrub(text: string, secrets: readonly string[]): string {
  const wanted = secrets
    .filter((secret) => secret.length >= MIN_SECRET_LENGTH)
    .toSorted((one, other) => other.length - one.length)
    .map((secret) => RegExp.escape(secret));
  // All at once: one by one, a short secret could match in the replacement of another.
  return wanted.length === 0
    ? text
    : text.replaceAll(new RegExp(wanted.join('|'), 'g'), '[redacted]');
}

import { DatabaseError } from 'pg';
import { StoreError, type StoreFailureReason } from '../../monitor/errors.ts';

/** All that a server can be the reason for. */
type ServerReason = Exclude<StoreFailureReason, 'replaced'>;

/** By SQLSTATE, or by its class; classes that are not here are `other`. */
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
  busy: 'the database of store.postgres_url_file or _env has no time for it',
  corrupt: 'the database of store.postgres_url_file or _env is damaged; restore a backup',
  other: 'the database of store.postgres_url_file or _env refused',
};

/** PgBouncer does not know the limits that each connection asks for (session.ts). */
const BELTS_REFUSED =
  'the pooler before the database of store.postgres_url_file or _env refuses connections: set its ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout';

/**
 * What the server or the way to it did, as a {@link StoreError}. Of the system only the code is told, as its texts name
 * the server; of other texts what is not part of the connection string. There is no `cause`: it would tell the rest.
 */
export function toStoreError(error: unknown, secrets: readonly string[]): StoreError {
  if (error instanceof StoreError) return error;
  if (!(error instanceof Error) || isBug(error)) throw error;
  const code = codeOf(error);
  if (error instanceof DatabaseError) {
    if (code === '08P01' && error.message.startsWith('unsupported startup parameter')) {
      return new StoreError('other', BELTS_REFUSED);
    }
    const reason = REASONS.get(code) ?? REASONS.get(code.slice(0, 2)) ?? 'other';
    return new StoreError(reason, `${TEXTS[reason]} (${code}: ${scrub(error.message, secrets)})`);
  }
  const what = code === '' ? scrub(error.message, secrets) : code;
  return new StoreError('io', `${TEXTS.io} (${what})`);
}

function isBug(error: Error): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((Bug) => error instanceof Bug);
}

/** Whether it failed before the server had said whether it was done. */
export function isOutcomeUnknown(error: unknown): boolean {
  return !(error instanceof DatabaseError) || /^(?:08|57P0)/.test(codeOf(error));
}

/** Whether the server says that it is none to write to, or will be none. */
export function isNoPrimary(error: unknown): boolean {
  return error instanceof DatabaseError && /^(?:25006|57P0[1-3])$/.test(codeOf(error));
}

/** Whether it can be tried again as it is: two statements were in each other's way. */
export function isCollision(error: unknown): boolean {
  return error instanceof DatabaseError && codeOf(error).startsWith('40');
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function scrub(text: string, secrets: readonly string[]): string {
  const wanted = secrets
    .filter((secret) => secret !== '')
    .toSorted((one, other) => other.length - one.length)
    .map((secret) => RegExp.escape(secret));
  // All at once: one by one, a short one would be looked for in what has taken the place of others.
  return wanted.length === 0
    ? text
    : text.replaceAll(new RegExp(wanted.join('|'), 'g'), '[redacted]');
}

/** Types of options that `config` reads and other folders use. */

/** Levels of the log, the most detailed first. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Grammar of a duration: one or more units in descending order, each at most once. */
export const DURATION_PATTERN = '^(?=\\d)(\\d+d)?(\\d+h)?(\\d+m)?(\\d+s)?(\\d+ms)?$';

const DURATION = new RegExp(DURATION_PATTERN);
/** Each unit and its length in ms, in the order of the grammar. */
const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const;

/** Parses `500ms`, `10s` or `1h30m` to ms; returns undefined for any other text (docs/specification.md#durations-and-sizes). */
export function parseDuration(text: string): number | undefined {
  const amounts: readonly (string | undefined)[] | undefined = DURATION.exec(text)?.slice(1);
  return amounts?.reduce((sum, amount, index) => {
    return sum + Number.parseInt(amount ?? '0', 10) * (UNITS[index]?.[1] ?? 0);
  }, 0);
}

/** A moment as users give it: so long ago, or a time, epoch ms. */
export type Moment = { readonly agoMs: number } | { readonly at: number };

/** What a moment can look like, for messages. */
export const A_MOMENT = 'a duration such as 24h, or a time such as 2026-11-29 or 2026-11-29T08:30Z';

/** A day that its month has; 29 February of any year. */
const DAY_PATTERN = '((0[1-9]|1[0-2])-(0[1-9]|[12]\\d)|(0[13-9]|1[0-2])-30|(0[13578]|1[02])-31)';
/** Grammar of a date, or of a time with its zone. */
const TIME_PATTERN = `^\\d{4}-${DAY_PATTERN}(T([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d(\\.\\d{1,3})?)?(Z|[+-](0\\d|1[0-4]):[0-5]\\d))?$`;

/** Grammar of a moment. */
export const MOMENT_PATTERN = `${DURATION_PATTERN}|${TIME_PATTERN}`;

const MOMENT = new RegExp(MOMENT_PATTERN);

/** Parses a duration, which counts back from now, or a time of ISO 8601; a date begins in UTC. Undefined for any other text. */
export function parseMoment(text: string): Moment | undefined {
  if (!MOMENT.test(text)) return undefined;
  const agoMs = parseDuration(text);
  return agoMs === undefined ? { at: Date.parse(text) } : { agoMs };
}

/** Returns the time of a moment, epoch ms; undefined without one. */
export function timeOf(moment: Moment | undefined, now: number): number | undefined {
  if (moment === undefined) return undefined;
  return 'at' in moment ? moment.at : Math.max(0, now - moment.agoMs);
}

/**
 * Formats a duration in ms as the configuration writes it: `1h30m`, `500ms`, `0s`. With `maxUnits` it is rounded down to so
 * many units, from its largest one on.
 */
export function formatDuration(ms: number, maxUnits: number = UNITS.length): string {
  const first = UNITS.findIndex(([, length]) => ms >= length);
  if (first === -1) return '0s';
  let text = '';
  let left = ms;
  for (const [unit, length] of UNITS.slice(first, first + maxUnits)) {
    const count = Math.floor(left / length);
    left -= count * length;
    if (count > 0) text += `${count}${unit}`;
  }
  return text;
}

/** Source of a secret: an API key (docs/specification.md#api-keys) or the connection string of the database. */
export type SecretSource =
  | {
      readonly file: string;
      /** Whether the path could be the key itself, so that no message shows it unless there is such a file. */
      readonly couldBeKey?: boolean;
    }
  /** `value` is that of the variable `env` when the configuration was loaded; undefined if it was unset or empty. */
  | { readonly env: string; readonly value: string | undefined };

/** TLS and logins of the HTTP interface (docs/specification.md#protection). */
export interface Protection {
  /** Undefined for plain HTTP. */
  readonly tls: TlsSettings | undefined;
  /** The bcrypt hash (`$2b$`) of each user's password; empty if no login is needed. */
  readonly users: ReadonlyMap<string, string>;
}

export interface TlsSettings {
  /** Options of Node's `tls.createSecureContext`: contents of PEM files, and versions. */
  readonly context: {
    readonly cert: string;
    readonly key: string;
    /** CA certificates that client certificates are verified against. */
    readonly ca: string | undefined;
    readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
    readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3';
  };
  readonly clientAuth: ClientAuth;
}

/** Which client certificates are requested and verified; the names are those of Go's crypto/tls. */
export const CLIENT_AUTH_TYPES = [
  'NoClientCert',
  'VerifyClientCertIfGiven',
  'RequireAndVerifyClientCert',
] as const;
export type ClientAuth = (typeof CLIENT_AUTH_TYPES)[number];

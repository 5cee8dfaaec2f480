import { html } from 'hono/html';
import type { StateExpectation } from '../../domain/limits.ts';
import type { NoErrorInfoReason } from '../../domain/failure.ts';
import type { Origin } from '../../domain/status.ts';
import { visible } from '../../domain/visible.ts';
import type { PollFailureReason, StoreFailureReason } from '../../monitor/errors.ts';
import { isoTime } from '../../rows/fields.ts';

/** Markup made by hono's `html`, which escapes the texts in it. */
export type Html = ReturnType<typeof html>;

// Texts from outside.

/** Nothing that is seen. */
const BLANK = /^[\s\p{DI}\u2800]+$/u;

export interface Cut {
  readonly shown: Html;
  readonly isWhole: boolean;
}

/**
 * Shows the first `length` characters of a text from outside on one line. It is isolated from the writing direction around
 * it, and characters that are invisible or reorder it are escaped.
 */
export function untrustedText(text: string, length: number): Cut {
  return cut(text.split('\n').map(visible).join('⏎'), length);
}

/** A name or an id on one line; a long one unfolds. */
export function untrustedName(text: string): Html {
  const start = shortUntrusted(text);
  return start.isWhole ? start.shown : fold(start, untrustedText(text, 1100));
}

/** The beginning of a name, for links. */
export function shortUntrusted(text: string): Cut {
  return untrustedText(text, 80);
}

/** A message of several lines, folded to its beginning; `whole` is the maximum length of the unfolded text. */
export function untrustedMessage(text: string, whole: number): Html {
  const lines = text.replaceAll('\r\n', '\n');
  const start = untrustedText(lines, 300);
  if (start.isWhole && !lines.includes('\n')) return start.shown;
  return fold(start, cut(lines.replaceAll(/[^\n\t]+/g, visible), whole));
}

function cut(text: string, length: number): Cut {
  const start = Array.from(text.slice(0, 2 * length))
    .slice(0, length)
    .join('');
  const isWhole = start.length === text.length;
  const shown = BLANK.test(start) ? `"${start}"` : start;
  return { shown: html`<bdi class="text">${shown}${isWhole ? '' : '…'}</bdi>`, isWhole };
}

function fold(start: Cut, all: Cut): Html {
  return html`<details class="fold">
    <summary>${start.shown}</summary>
    <div class="whole">${all.shown}</div>
    ${all.isWhole ? '' : html`<p class="quiet">The rest is in the JSON of the API.</p>`}
  </details>`;
}

// Times and numbers.

export const DAY_MS = 86_400_000;
const UNITS = [
  ['d', DAY_MS],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

/** Formats a duration in its two largest units: `2 d 4 h`, `35 s`. */
export function duration(ms: number): string {
  const parts: string[] = [];
  let left = Math.max(0, ms);
  for (const [unit, length] of UNITS) {
    const count = Math.floor(left / length);
    left -= count * length;
    if (count > 0) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2 || (parts.length === 1 && unit === 'min')) break;
  }
  return parts.join(' ') || 'less than 1 s';
}

/** Like {@link duration}, with the seconds below 10 minutes: `1 min 30 s`. */
function preciseDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60 || seconds >= 600 || seconds % 60 === 0) return duration(ms);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `4 min ago`, `in 5 s`. */
export function ago(ms: number, now: number): string {
  if (Math.abs(now - ms) < 1000) return 'now';
  return ms < now ? `${duration(now - ms)} ago` : `in ${duration(ms - now)}`;
}

/** A time in UTC, and how long ago it was. */
export function timeWithAge(ms: number, now: number): Html {
  return html`<span class="when"><span class="ago">${ago(ms, now)}</span> ${utcTime(ms)}</span>`;
}

/** A time in UTC, to the second. */
export function utcTime(ms: number): Html {
  const iso = isoTime(ms);
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC</time>`;
}

/** Label of a plot's axis: `13:45 UTC`. */
export function clockTime(ms: number): string {
  return `${isoTime(ms).slice(11, 16)} UTC`;
}

/** `24 hours`, or the retention of the store if that is shorter. */
export function dayText(retentionMs: number): string {
  return retentionMs < DAY_MS ? duration(retentionMs) : '24 hours';
}

export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 prompt`, `12,345 prompts`. */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** `38 %`; `less than 1 %` and `more than 99 %` where rounding would say none or all. */
export function shareText(count: number, total: number): string {
  const percent = (count / total) * 100;
  if (percent > 0 && percent < 1) return 'less than 1 %';
  if (percent > 99 && percent < 100) return 'more than 99 %';
  return `${Math.round(percent)} %`;
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// Words.

/** Number of moves to FAILED. */
export interface FailureTotal {
  readonly count: number;
  /** Whether counting stopped at the maximum; there may be more. */
  readonly isCapped: boolean;
}

/** `2 failures in the last 24 hours`; a shorter period if the retention of the store is shorter. */
export function failuresText(failures: FailureTotal, retentionMs: number): string {
  return `${failureCount(failures)} in the last ${dayText(retentionMs)}`;
}

/** `2 failures`, `at least 100,000 failures`. */
export function failureCount({ count, isCapped }: FailureTotal): string {
  return `${isCapped ? 'at least ' : ''}${counted(count, 'failure')}`;
}

/** `usually 20 min, limit 1 h (learned)`, `no limit`. */
export function expectationText({ limitMs, source, typicalMs }: StateExpectation): string {
  const usual = typicalMs === undefined ? '' : `usually ${preciseDuration(typicalMs)}, `;
  const limit =
    limitMs === undefined ? 'no limit' : `limit ${preciseDuration(limitMs)} (${source})`;
  return usual + limit;
}

/** `at most 20 % of finished prompts may fail`. */
export function objectiveText(maxFailureRatio: number | undefined): string {
  if (maxFailureRatio === undefined) return 'none';
  return `at most ${Number((maxFailureRatio * 100).toFixed(2))} % of finished prompts may fail`;
}

/** Reasons of failed polls, worded to follow "because". */
export const POLL_FAILURE_WORDS: Readonly<Record<PollFailureReason, string>> = {
  auth: 'the service refuses the API key, or the key cannot be read',
  not_found: 'the service has no such project (404)',
  validation: 'the service rejects the request as invalid (422)',
  rate_limited: 'the service asks for fewer requests (429)',
  client_error: 'the service refuses the request (4xx)',
  server_error: 'the service reports an internal error (5xx)',
  timeout: 'the service does not answer in time',
  network: 'the service cannot be reached',
  tls: 'no trusted TLS connection to the service is possible',
  redirect: 'the service redirects to another address, and evalwatch does not send the key there',
  invalid_response: 'the service sent an invalid answer',
  too_large: 'the answer of the service exceeds max_response_size or max_items',
  store: 'the poll could not be stored',
};

/** Replace the words for `auth` if the cause is known. */
export const REFUSED_KEY_WORDS = 'the service refuses the API key (401 or 403)';
export const NO_KEY_WORDS =
  'there is no API key to send: its file or variable cannot be read, is empty or does not hold a key';

/** Reasons of failures without error_info, worded to follow "because". */
export const NO_ERROR_INFO_WORDS: Readonly<Record<NoErrorInfoReason, string>> = {
  invalid_id: 'the id of the prompt cannot be used in a request',
  not_found: 'the service no longer has the prompt (404)',
  validation: 'the service rejects the request as invalid (422)',
  client_error: 'the service refuses the request (4xx)',
  redirect: 'the service redirects to another address',
  too_large: 'the answer of the service is too large',
  invalid_response: 'the service sent an invalid answer',
  no_error_info: 'the service has none',
  project_removed: 'the project was removed from the configuration',
  unavailable: 'the service was unavailable for a day',
};

export const STORE_FAILURE_WORDS: Readonly<Record<StoreFailureReason, string>> = {
  full: 'the disk is full',
  io: 'the disk reports errors, the file cannot be opened, or the database cannot be reached',
  busy: 'another process uses it, or the database is overloaded',
  corrupt: 'it is damaged',
  replaced: 'its file was deleted, moved or replaced',
  other: 'see the log, event store.commit_failed',
};

/** Sign of each status, for readers who cannot distinguish the colours. */
export const SIGNS: Readonly<Record<Origin, string>> = {
  NEW: '+',
  PENDING: '○',
  RUNNING: '▶',
  COMPLETED: '✓',
  FAILED: '✗',
  UNKNOWN: '?',
  NONE: '–',
};

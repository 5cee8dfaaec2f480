import { html } from 'hono/html';
import type { StateExpectation } from '../../domain/limits.ts';
import type { Origin } from '../../domain/status.ts';
import { beginningOf, onOneLine, visible } from '../../domain/visible.ts';
import { counted, duration } from '../../domain/words.ts';
import type { StoreFailureReason } from '../../monitor/errors.ts';
import { isoTime, type ProjectState } from '../../rows/fields.ts';

/** Markup made by hono's `html`, which escapes the texts in it. */
export type Html = ReturnType<typeof html>;

// Texts from outside.

export interface Cut {
  readonly shown: Html;
  readonly isWhole: boolean;
}

/**
 * Shows the first `length` characters of a text from outside on one line. It is isolated from the writing direction around
 * it, and characters that are invisible or reorder it are escaped.
 */
export function untrustedText(text: string, length: number): Cut {
  return cut(onOneLine(text), length);
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

/** The beginning of a name as plain text, for the title of a page. */
export function plainName(text: string): string {
  return beginningOf(onOneLine(text), 80).text;
}

/** A message of several lines, folded to its beginning; `whole` is the maximum length of the unfolded text. */
export function untrustedMessage(text: string, whole: number): Html {
  const lines = text.replaceAll('\r\n', '\n');
  const start = untrustedText(lines, 300);
  if (start.isWhole && !lines.includes('\n')) return start.shown;
  return fold(start, cut(lines.replaceAll(/[^\n\t]+/g, visible), whole));
}

function cut(text: string, length: number): Cut {
  const { text: shown, isWhole } = beginningOf(text, length);
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

/** A time in UTC, which the script shows in the reader's zone, and how long ago it was. */
export function timeWithAge(ms: number, now: number): Html {
  return html`<span>${ago(ms, now)} ${utcTime(ms)}</span>`;
}

/** A time in UTC, to the second. */
export function utcTime(ms: number): Html {
  const iso = isoTime(ms);
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC</time>`;
}

/** Label of a plot's axis: `13:45 UTC`. */
export function clockTime(ms: number): Html {
  const iso = isoTime(ms);
  return html`<time class="clock" datetime="${iso}">${iso.slice(11, 16)} UTC</time>`;
}

/** `24 hours`, or the retention of the store if that is shorter. */
export function dayText(retentionMs: number): string {
  return retentionMs < DAY_MS ? duration(retentionMs) : '24 hours';
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

export const STORE_FAILURE_WORDS: Readonly<Record<StoreFailureReason, string>> = {
  full: 'the disk is full',
  io: 'the disk reports errors, the file cannot be opened, or the database cannot be reached',
  busy: 'another process uses it, or the database is overloaded',
  corrupt: 'it is damaged',
  replaced: 'its file was deleted, moved or replaced',
  other: 'see the log, event store.commit_failed',
};

export const STATE_WORDS: Readonly<Record<ProjectState, string>> = {
  down: 'Down',
  late: 'Late',
  new: 'Not polled yet',
  unknown: 'Unknown',
  up: 'Up',
  paused: 'Paused',
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

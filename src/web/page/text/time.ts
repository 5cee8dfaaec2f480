import { html } from 'hono/html';
import { isoTime } from '../../../rows/fields.ts';
import type { Html } from '../html.ts';

const UNITS = [
  ['d', 86_400_000],
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
export function preciseDuration(ms: number): string {
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

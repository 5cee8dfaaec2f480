import { html } from 'hono/html';
import { DATASET_STATUSES, type Status } from '../../domain/status.ts';
import { grouped } from '../../domain/words.ts';
import type { MoveCount } from '../../monitor/ports/store.ts';
import { clockTime, SIGNS, type Html } from './text.ts';

export const SPANS = 96;
export const SPAN_MS = 15 * 60 * 1000;

/** Number of prompts in each status at the end of each span of the last day. */
export interface StatusHistory {
  /** Begin of the first span, epoch ms. */
  readonly since: number;
  /** Time before which the counts are unknown, epoch ms. */
  readonly knownSince: number;
  /** Oldest first; undefined for a span whose counts are unknown. */
  readonly spans: readonly (ReadonlyMap<Status, number> | undefined)[];
}

/** Begin of the first of {@link SPANS} spans, of which the last one contains `now`. Epoch ms. */
export function historyStart(now: number): number {
  return Math.floor(now / SPAN_MS) * SPAN_MS - (SPANS - 1) * SPAN_MS;
}

/**
 * Computes the history backwards: from the current counts, it undoes the moves of each span. So the store needs no
 * counts of the past. Prompts that are gone by now are left out of all spans.
 */
export function statusHistory(
  counts: ReadonlyMap<Status, number>,
  moves: readonly MoveCount[],
  { since, knownSince }: Pick<StatusHistory, 'since' | 'knownSince'>,
): StatusHistory {
  const bySpan = Map.groupBy(moves, ({ span }) => Math.min(span, SPANS - 1));
  const spans: (ReadonlyMap<Status, number> | undefined)[] = [];
  let current = counts;
  for (let span = SPANS - 1; span >= 0; span -= 1) {
    const isKnown = since + (span + 1) * SPAN_MS > knownSince;
    spans.unshift(isKnown ? current : undefined);
    current = before(current, bySpan.get(span) ?? []);
  }
  return { since, knownSince, spans };
}

function before(
  after: ReadonlyMap<Status, number>,
  moves: readonly MoveCount[],
): ReadonlyMap<Status, number> {
  if (moves.length === 0) return after;
  const counts = new Map(after);
  const add = (status: Status, count: number) =>
    counts.set(status, (counts.get(status) ?? 0) + count);
  for (const { from, to, listed } of moves) {
    add(to, -listed);
    if (from !== 'NEW') add(from, listed);
  }
  return new Map(Array.from(counts, ([status, count]) => [status, Math.max(0, count)]));
}

/** Place of each status, from the bottom of the plot and from the left of the bar: failed and unknown statuses come first. */
const PLACES: Readonly<Record<Status, number>> = {
  FAILED: 0,
  UNKNOWN: 1,
  NONE: 2,
  RUNNING: 3,
  PENDING: 4,
  COMPLETED: 5,
};
const LAYERS = DATASET_STATUSES.toSorted((a, b) => PLACES[a] - PLACES[b]);
const WIDTH = 960;
const HEIGHT = 120;
/** Minimum height of a layer, so that one failure among thousands is visible. */
const MIN_HEIGHT = 4;

/** Counts by status as one bar, without text: a legend stands beside it. */
export function bar(counts: ReadonlyMap<Status, number>): Html {
  const shown = LAYERS.filter((status) => (counts.get(status) ?? 0) > 0);
  const total = sum(counts);
  const room = WIDTH - shown.length * 2 * MIN_HEIGHT;
  let left = 0;
  const parts = shown.map((status) => {
    const width = 2 * MIN_HEIGHT + ((counts.get(status) ?? 0) / total) * room;
    const part = html`<rect
      class="${status}"
      x="${round(left)}"
      width="${round(width)}"
      height="20"
    />`;
    left += width;
    return part;
  });
  return html`<svg
    class="bar"
    viewBox="0 0 ${WIDTH} 20"
    preserveAspectRatio="none"
    aria-hidden="true"
  >
    <rect class="none" width="${WIDTH}" height="20" />
    ${parts}
  </svg>`;
}

/** The last day of a project as stacked areas. Counts after `unmonitoredSince` are out of date, and shown paler. */
export function plot(
  history: StatusHistory,
  now: number,
  unmonitoredSince: number | undefined,
): Html {
  const end = history.since + SPANS * SPAN_MS;
  const known = history.spans.filter((span) => span !== undefined);
  const maxTotal = Math.max(0, ...known.map((counts) => sum(counts)));
  if (maxTotal === 0) return html``;
  const shown = LAYERS.filter((status) => known.some((counts) => (counts.get(status) ?? 0) > 0));
  const room = HEIGHT - shown.length * MIN_HEIGHT;
  let floors: readonly number[] = [];
  // Each layer reaches down to the ground, so the lower layers are painted later.
  const layers = shown.map((status) => {
    const tops = history.spans.map((counts, span) => {
      const count = counts?.get(status) ?? 0;
      return (floors[span] ?? 0) + (count === 0 ? 0 : MIN_HEIGHT + (count / maxTotal) * room);
    });
    const path = html`<path class="${status}" d="${area(tops)}" />`;
    floors = tops;
    return path;
  });
  const isShort = history.knownSince > history.since;
  const outdatedX =
    unmonitoredSince === undefined
      ? WIDTH
      : (Math.max(0, unmonitoredSince - history.since) / (end - history.since)) * WIDTH;
  return html`<figure class="plot">
    <svg
      role="img"
      aria-label="${inWords(history)}"
      viewBox="0 0 ${WIDTH} ${HEIGHT}"
      preserveAspectRatio="none"
    >
      <rect class="none" width="${WIDTH}" height="${HEIGHT}" />
      ${layers.toReversed()}
      ${outdatedX < WIDTH ? html`<rect class="outdated" x="${round(outdatedX)}" width="${round(WIDTH - outdatedX)}" height="${HEIGHT}" />` : ''}
    </svg>
    <figcaption>
      <span>${clockTime(history.since)}</span>
      <span
        >${isShort ? html`since ${clockTime(Math.min(history.knownSince, now))}, ` : ''}peak
        ${grouped(maxTotal)}</span
      >
      <span>now</span>
    </figcaption>
  </figure>`;
}

/** Counts by status in words, each with its sign and colour; statuses with a count of 0 are left out. */
export function legend(
  counts: ReadonlyMap<Status, number>,
  linkOf?: (status: Status) => string,
): Html {
  const items = LAYERS.map((status) => [status, counts.get(status) ?? 0] as const)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => {
      const text = html`${badge(status)} <b>${grouped(count)}</b>`;
      return html`<li>
        ${linkOf === undefined ? text : html`<a href="${linkOf(status)}">${text}</a>`}
      </li>`;
    });
  return html`<ul class="legend">
    ${items.length === 0 ? html`<li>none</li>` : items}
  </ul>`;
}

export function badge(status: keyof typeof SIGNS): Html {
  return html`<span class="status ${status}"
    ><span aria-hidden="true">${SIGNS[status]}</span> ${status}</span
  >`;
}

/** SVG path of the area under these heights, with a point only where the height changes. */
function area(heights: readonly number[]): string {
  const points = heights.flatMap((height, span) => {
    const last = heights[span - 1];
    return height === last ? [] : [`L${x(span)},${y(last ?? 0)}`, `L${x(span)},${y(height)}`];
  });
  return `M0,${y(0)} ${points.join(' ')} L${WIDTH},${y(heights.at(-1) ?? 0)} L${WIDTH},${y(0)} Z`;
}

function x(span: number): number {
  return round((span * WIDTH) / SPANS);
}

function y(height: number): number {
  return round(HEIGHT - height);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function sum(counts: ReadonlyMap<Status, number>): number {
  return counts.values().reduce((total, count) => total + count, 0);
}

function inWords({ spans }: StatusHistory): string {
  const first = spans.find((span) => span !== undefined) ?? new Map<Status, number>();
  const last = spans.at(-1) ?? first;
  const changes = LAYERS.filter((status) => (first.get(status) ?? 0) + (last.get(status) ?? 0) > 0)
    .map((status) => `${status} from ${first.get(status) ?? 0} to ${last.get(status) ?? 0}`)
    .join(', ');
  return `Prompts by status over the last 24 hours: ${changes || 'none'}`;
}

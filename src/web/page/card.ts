import { html } from 'hono/html';
import type { Status } from '../../domain/status.ts';
import { counted, duration, grouped } from '../../domain/words.ts';
import {
  NO_KEY_WORDS,
  POLL_FAILURE_WORDS,
  REFUSED_KEY_WORDS,
  type FailedRequest,
} from '../../monitor/errors.ts';
import type { ListingSnapshot, PollHealth } from '../../monitor/ports/store.ts';
import { facts } from './layout.ts';
import { projectLink, waitText } from './lists.ts';
import { isUnmonitored, lastFailureAt, type ProjectView } from './model.ts';
import { bar, legend, plot, type StatusHistory } from './plot.ts';
import { objectiveText, timeWithAge, untrustedText, utcTime, type Html } from './text.ts';

/** Characters of each text about the last error that are shown. */
const MAX_ERROR_LENGTH = 300;

/** A project on the overview. */
export function projectCard(
  view: ProjectView,
  history: StatusHistory | undefined,
  now: number,
): Html {
  const { watched, state, hasStuckPrompts } = view;
  return html`<li class="project ${state} ${hasStuckPrompts ? 'stuck' : ''}">
    <h3>${projectLink(watched.id, './')}</h3>
    ${stateLine(view, now)} ${countsOf(view)}
    ${history === undefined ? '' : plot(history, now, unmonitoredSince(view))}
    ${polls(view, now, [
      ['Team', watched.team || undefined],
      ['Objective', objectiveText(watched.expect.maxFailureRatio)],
    ])}
  </li>`;
}

/** Whether the project is up; if not, why and since when. */
export function stateLine({ watched, state, snapshot }: ProjectView, now: number): Html {
  const { pause } = watched;
  if (state === 'paused') {
    const until = pause?.until === undefined ? '' : html` until ${utcTime(pause.until)}`;
    return html`<p class="state warn"><strong>‖ Paused</strong>${until}: it is not polled</p>`;
  }
  if (state === 'up') {
    const quiet = pause === undefined ? '' : ', in maintenance: no alerts, no messages';
    return html`<p class="state ok"><strong>✓ Up</strong>${quiet}</p>`;
  }
  if (state === 'new') {
    return html`<p class="state warn"><strong>○ Not polled yet</strong></p>`;
  }
  if (state === 'unknown') {
    return html`<p class="state warn">
      <strong>? Unknown</strong>: another worker polls it, and the store cannot be read
    </p>`;
  }
  if (state === 'late') {
    return html`<p class="state bad">
      <strong>✗ Late</strong>: it should have been polled
      ${timeWithAge(watched.nextPollAt ?? now, now)}
    </p>`;
  }
  const { lastSuccessAt, consecutiveFailures, failure } = watched.health;
  const since = lastSuccessAt ?? snapshot?.configuredAt;
  const unseen =
    lastSuccessAt === undefined ? 'Never polled successfully in' : 'No successful poll for';
  return html`<p class="state bad"><strong>✗ Down</strong>: ${reasonOf(watched.health)}</p>
    <p class="facts">
      ${counted(consecutiveFailures, 'failed poll')} in a row.
      ${since === undefined ? '' : html`${unseen} ${duration(now - since)}, since ${utcTime(since)}.`}
    </p>
    ${failure === undefined ? '' : lastError(failure)}`;
}

function reasonOf({ reason, failure }: PollHealth): Html {
  if (reason === undefined) return html`the last poll failed.`;
  let words = POLL_FAILURE_WORDS[reason];
  if (reason === 'auth' && failure !== undefined) {
    words = failure.statusCode === undefined ? NO_KEY_WORDS : REFUSED_KEY_WORDS;
  }
  return html`${words}. <code>${reason}</code>`;
}

/** What was requested and what came back: the beginning of each text, as the log has the rest. */
function lastError({ message, url, statusCode, location, detail }: FailedRequest): Html {
  const shown = (text: string | undefined) =>
    text === undefined ? undefined : untrustedText(text, MAX_ERROR_LENGTH).shown;
  return facts('error', [
    ['Last error', shown(message)],
    ['Request', shown(url)],
    ['Status', shown(statusCode?.toString())],
    ['Location', shown(location)],
    ['Answer', shown(detail)],
  ]);
}

/** Time of the last successful poll, if the counts of the project are out of date; otherwise undefined. Epoch ms. */
export function unmonitoredSince(view: ProjectView): number | undefined {
  const isPolled = !isUnmonitored(view) && view.state !== 'paused';
  return isPolled ? undefined : view.watched.health.lastSuccessAt;
}

/** Counts by status, as a bar and in words. */
export function countsOf(view: ProjectView, linkOf?: (status: Status) => string): Html {
  const prompts = view.snapshot?.listings.get('prompt');
  if (prompts === undefined) return html`<p class="quiet">The store cannot be read.</p>`;
  const datasets = view.snapshot?.listings.get('dataset');
  return html`${bar(prompts.counts)}
    <div class="counts">
      <span class="quiet">Prompts</span> ${legend(prompts.counts, linkOf)}
      ${prompts.missing > 0 ? html`<span class="quiet">${grouped(prompts.missing)} not in the last listing</span>` : ''}
      ${failedAtFirst(prompts)}
    </div>
    ${
      view.watched.datasets && datasets?.counts.values().some((count) => count > 0)
        ? html`<div class="counts">
            <span class="quiet">Datasets</span> ${legend(datasets.counts)}
          </div>`
        : ''
    }`;
}

/**
 * Says how many prompts were FAILED at the first poll and still are, because no count of failures contains them. They are
 * at least those for which no transition to FAILED was counted.
 */
function failedAtFirst({ counts, transitions, goneTotal }: ListingSnapshot): Html | '' {
  const failures = transitions.reduce(
    (sum, [, to, count]) => sum + (to === 'FAILED' ? count : 0),
    0,
  );
  const atFirst = (counts.get('FAILED') ?? 0) - failures;
  if (atFirst <= 0) return '';
  const isExact = goneTotal === 0 && transitions.every(([from]) => from !== 'FAILED');
  return html`<span class="quiet"
    >${isExact ? '' : 'at least '}${grouped(atFirst)} FAILED since before the first poll, not
    counted as ${atFirst === 1 ? 'a failure' : 'failures'}</span
  >`;
}

/** Times of the last success, the next poll, the last failure and the prompts that have waited longest, and `more`. */
export function polls(
  view: ProjectView,
  now: number,
  more: Parameters<typeof facts>[1] = [],
): Html {
  const { health, nextPollAt, isIdle } = view.watched;
  const time = (ms: number | undefined) => (ms === undefined ? undefined : timeWithAge(ms, now));
  return facts('polls', [
    ['Last success', time(health.lastSuccessAt) ?? 'never'],
    [
      'Next poll',
      nextPollAt === undefined
        ? 'not due'
        : html`${timeWithAge(nextPollAt, now)} ${isIdle ? '(idle schedule)' : ''}`,
    ],
    ['Last failure', time(lastFailureAt(view))],
    ...view.longest.map((wait) => [`Longest ${wait.status}`, waitText(wait)] as const),
    ...more,
  ]);
}

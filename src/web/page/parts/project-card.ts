import { html } from 'hono/html';
import type { Status } from '../../../domain/status.ts';
import type { FailedRequest, PollFailureReason } from '../../../monitor/errors.ts';
import type { ListingSnapshot } from '../../../monitor/ports/store.ts';
import type { ProjectState } from '../content.ts';
import type { StatusHistory } from '../model/history.ts';
import { projectLink, waitText } from './lists.ts';
import { lastFailureAt, type ProjectView } from '../model/overview-model.ts';
import { bar, legend, plot } from './plot.ts';
import { isUnmonitored } from '../model/project-state.ts';
import { objectiveText } from '../text/expectation-words.ts';
import { utcTime, duration, timeWithAge } from '../text/time.ts';
import { untrustedText } from '../text/untrusted-text.ts';
import type { Html } from '../html.ts';
import {
  counted,
  grouped,
  NO_KEY_WORDS,
  POLL_FAILURE_WORDS,
  REFUSED_KEY_WORDS,
} from '../text/words.ts';

/** Characters of each text about the last error that are shown. */
const MAX_ERROR_LENGTH = 300;

type Down = Extract<ProjectState, { kind: 'down' }>;

/** A project on the overview. */
export function projectCard(
  view: ProjectView,
  history: StatusHistory | undefined,
  now: number,
): Html {
  const { watched, state, hasStuckPrompts } = view;
  const team = html`${
      watched.team === ''
        ? ''
        : html`<dt>Team</dt>
            <dd>${watched.team}</dd>`
    }
    <dt>Objective</dt>
    <dd>${objectiveText(watched.expect.maxFailureRatio)}</dd>`;
  return html`<li class="project ${state.kind} ${hasStuckPrompts ? 'stuck' : ''}">
    <h3>${projectLink(watched.id, './')}</h3>
    ${stateLine(view, now)} ${countsOf(view)}
    ${history === undefined ? '' : plot(history, now, unmonitoredSince(view))}
    ${polls(view, now, team)}
  </li>`;
}

/** Whether the project is up; if not, why and since when. */
export function stateLine({ watched, state, snapshot }: ProjectView, now: number): Html {
  if (state.kind === 'up') return html`<p class="state ok"><strong>✓ Up</strong></p>`;
  if (state.kind === 'new') {
    return html`<p class="state warn"><strong>○ Not polled yet</strong></p>`;
  }
  if (state.kind === 'unknown') {
    return html`<p class="state warn">
      <strong>? Unknown</strong>: another worker polls it, and the store cannot be read
    </p>`;
  }
  if (state.kind === 'late') {
    return html`<p class="state bad">
      <strong>✗ Late</strong>: it should have been polled ${timeWithAge(state.dueAt, now)}
    </p>`;
  }
  const { lastSuccessAt, consecutiveFailures } = watched.health;
  const since = lastSuccessAt ?? snapshot?.configuredAt;
  const unseen =
    lastSuccessAt === undefined ? 'Never polled successfully in' : 'No successful poll for';
  return html`<p class="state bad"><strong>✗ Down</strong>: ${reasonOf(state)}</p>
    <p class="facts">
      ${counted(consecutiveFailures, 'failed poll')} in a row.
      ${since === undefined ? '' : html`${unseen} ${duration(now - since)}, since ${utcTime(since)}.`}
    </p>
    ${state.failure === undefined ? '' : lastError(state.failure)}`;
}

function reasonOf({ reason, failure }: Down): Html {
  if (reason === undefined) return html`the last poll failed.`;
  return html`${wordsFor(reason, failure)}. <code>${reason}</code>`;
}

function wordsFor(reason: PollFailureReason, failure: Down['failure']): string {
  if (reason !== 'auth' || failure === undefined) return POLL_FAILURE_WORDS[reason];
  return failure.statusCode === undefined ? NO_KEY_WORDS : REFUSED_KEY_WORDS;
}

/** What was requested and what came back: the beginning of each text, as the log has the rest. */
function lastError({ message, url, statusCode, location, detail }: FailedRequest): Html {
  const facts = [
    ['Last error', message],
    ['Request', url],
    ['Status', statusCode?.toString()],
    ['Location', location],
    ['Answer', detail],
  ] as const;
  return html`<dl class="error">
    ${facts.map(([name, text]) =>
      text === undefined
        ? ''
        : html`<dt>${name}</dt>
            <dd>${untrustedText(text, MAX_ERROR_LENGTH, 'one line').shown}</dd>`,
    )}
  </dl>`;
}

/** Time of the last successful poll, if the counts of the project are out of date; otherwise undefined. Epoch ms. */
export function unmonitoredSince({ state, watched }: ProjectView): number | undefined {
  return isUnmonitored(state) ? watched.health.lastSuccessAt : undefined;
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
export function polls(view: ProjectView, now: number, more?: Html): Html {
  const { health, nextPollAt } = view.watched;
  const failure = lastFailureAt(view);
  return html`<dl class="polls">
    <dt>Last success</dt>
    <dd>
      ${health.lastSuccessAt === undefined ? 'never' : timeWithAge(health.lastSuccessAt, now)}
    </dd>
    <dt>Next poll</dt>
    <dd>${nextPollAt === undefined ? 'not due' : timeWithAge(nextPollAt, now)}</dd>
    ${
      failure === undefined
        ? ''
        : html`<dt>Last failure</dt>
            <dd>${timeWithAge(failure, now)}</dd>`
    }
    ${view.longest.map(
      (wait) =>
        html`<dt>Longest ${wait.status}</dt>
          <dd>${waitText(wait)}</dd>`,
    )}
    ${more ?? ''}
  </dl>`;
}

import { html } from 'hono/html';
import { promptUrl } from '../../../domain/prompt-url.ts';
import { UNFINISHED_STATUSES } from '../../../domain/status.ts';
import type { FailureRow, StatusRow, TransitionRow } from '../../../monitor/ports/store.ts';
import { waitOf, type ProjectView, type Wait } from '../model/overview-model.ts';
import { badge } from './plot.ts';
import { table } from './table.ts';
import { expectationText } from '../text/expectation-words.ts';
import { utcTime, duration, timeWithAge } from '../text/time.ts';
import { shortUntrusted, untrustedMessage, untrustedName } from '../text/untrusted-text.ts';
import type { Html } from '../html.ts';
import { NO_ERROR_INFO_WORDS } from '../text/words.ts';

const WAITING = UNFINISHED_STATUSES.join(' or ');

/** What every page needs to show its lists. */
export interface ListOptions {
  readonly now: number;
  /** Time for which the store keeps transitions, ms. */
  readonly retentionMs: number;
  /** Template of the address of a prompt at the service; undefined without one. */
  readonly promptUrl: string | undefined;
}

/** Page that a list is shown on. */
export interface ListContext extends Pick<ListOptions, 'now' | 'promptUrl'> {
  /** Relative path of the overview, `./` or `../`: a proxy may serve the page under another path. */
  readonly root: string;
  /** Project of the page; undefined if the list has rows of several projects. */
  readonly project: string | undefined;
  /** The configured projects by id. */
  readonly views: ReadonlyMap<string, ProjectView>;
}

export function projectLink(id: string, root: string): Html {
  return html`<a href="${projectPath(id, root)}">${shortUntrusted(id).shown}</a>`;
}

function projectPath(id: string, root: string): string {
  return `${root}projects/${encodeURIComponent(id.toWellFormed())}`;
}

/** Failures, newest first, each with its error_info; `whole` is the budget of an unfolded message. */
export function failureList(
  rows: readonly FailureRow[],
  whole: number,
  context: ListContext,
): Html {
  if (rows.length === 0) return html`<p class="quiet">None.</p>`;
  return html`<ol class="failures">
    ${rows.map(
      (row) =>
        html`<li>
          <div class="head">
            ${badge('FAILED')}
            ${context.project === undefined ? projectLink(row.project, context.root) : ''}
            <div class="id">${promptId(row, context)}</div>
            ${timeWithAge(row.at, context.now)}
          </div>
          ${nameLine(row.promptName)} ${failureDetails(row, whole)}
        </li>`,
    )}
  </ol>`;
}

function failureDetails({ settlement }: FailureRow, whole: number): Html {
  if (settlement === undefined) {
    return html`<p class="quiet">error_info: not fetched yet, evalwatch keeps trying.</p>`;
  }
  if (settlement.errorInfo === undefined) {
    return html`<p>No error_info, because ${NO_ERROR_INFO_WORDS[settlement.reason]}.</p>`;
  }
  const { error_id, error_msg } = settlement.errorInfo;
  return html`<dl class="error">
    <dt>error_id</dt>
    <dd class="error-id">${error_id === null ? 'none' : untrustedName(error_id)}</dd>
    <dt>error_msg</dt>
    <dd>
      ${error_msg === null ? 'none' : untrustedMessage(error_msg, whole)}
      ${settlement.errorMsgTruncated ? html`<p class="quiet">Cut at 8,192 bytes.</p>` : ''}
    </dd>
  </dl>`;
}

export function waitingTable(rows: readonly StatusRow[], context: ListContext): Html {
  if (rows.length === 0) return html`<p class="quiet">No prompt is ${WAITING}.</p>`;
  return table({
    caption: `Prompts that are ${WAITING}, longest first`,
    headings: ['Prompt', 'Status', 'Waiting'],
    rows: rows.map((row) => [
      promptCell(row, context),
      badge(row.status),
      html`${waitText(waitIn(row, context))}
        <div class="quiet">since ${utcTime(row.since)}</div>`,
    ]),
  });
}

/** `for 3 h 40 min, usually 20 min, limit 1 h (learned)`, with a mark if the prompt is stuck. */
export function waitText({ ms, expectation, isStuck }: Wait): Html {
  const expected = expectation === undefined ? '' : `, ${expectationText(expectation)}`;
  return html`for <strong>${duration(ms)}</strong>${expected} ${isStuck ? STUCK : ''}`;
}

const STUCK = html`<strong class="stuck"><span aria-hidden="true">!</span> stuck</strong>`;

function waitIn(row: StatusRow, { views, now }: ListContext): Wait {
  return waitOf(row, views.get(row.project), now);
}

export function transitionTable(rows: readonly TransitionRow[], context: ListContext): Html {
  if (rows.length === 0) return html`<p class="quiet">None.</p>`;
  return table({
    caption: 'Transitions, newest first',
    headings: ['Prompt or dataset', 'Transition', 'Seen'],
    rows: rows.map((row) => [
      html`${row.kind === 'dataset' ? html`<span class="quiet">dataset</span>` : ''}
      ${idCell(row.kind === 'prompt' ? promptId({ ...row, promptId: row.id }, context) : untrustedName(row.id), row.project, context)}`,
      html`${badge(row.from)} → ${badge(row.to)}`,
      timeWithAge(row.at, context.now),
    ]),
  });
}

/** Prompts of one project with their status. */
export function promptTable(rows: readonly StatusRow[], context: ListContext): Html {
  if (rows.length === 0) return html`<p class="quiet">None.</p>`;
  return table({
    caption: 'Prompts, newest change first',
    headings: ['Prompt', 'Status', 'Since'],
    rows: rows.map((row) => [
      promptCell(row, context),
      html`${badge(row.status)} ${waitIn(row, context).isStuck ? STUCK : ''}
      ${row.statusRaw === undefined ? '' : html`<div class="quiet">${untrustedName(row.statusRaw)}</div>`}
      ${row.missing > 0 ? html`<div class="quiet">not in the last listing</div>` : ''}`,
      timeWithAge(row.since, context.now),
    ]),
  });
}

function promptCell(row: StatusRow, context: ListContext): Html {
  return html`${idCell(promptId(row, context), row.project, context)} ${nameLine(row.promptName)}`;
}

/** The id of a prompt, linked to its page at the service where there is an address. */
function promptId(row: Pick<StatusRow, 'project' | 'promptId'>, context: ListContext): Html {
  const url = context.promptUrl && promptUrl(context.promptUrl, row);
  if (!url) return untrustedName(row.promptId);
  const { shown, isWhole } = shortUntrusted(row.promptId);
  // A long id unfolds, which it cannot inside a link.
  return isWhole
    ? html`<a href="${url}" rel="noreferrer">${shown}</a>`
    : html`${untrustedName(row.promptId)}
        <a href="${url}" rel="noreferrer">Open at the service</a>`;
}

function nameLine(promptName: string | undefined): Html | '' {
  return promptName ? html`<div class="quiet">${untrustedName(promptName)}</div>` : '';
}

function idCell(id: Html, project: string, context: ListContext): Html {
  return html`<div class="id">${id}</div>
    ${
      context.project === undefined
        ? html`<div class="of">${projectLink(project, context.root)}</div>`
        : ''
    }`;
}

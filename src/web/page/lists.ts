import { html } from 'hono/html';
import { causeOf } from '../../domain/cause.ts';
import type { ExperimentState, PromptCounts } from '../../domain/experiment.ts';
import { NO_ERROR_INFO_WORDS } from '../../domain/failure.ts';
import { experimentPath, projectPath, promptPath } from '../../domain/page-path.ts';
import { promptUrl } from '../../domain/prompt-url.ts';
import { PROMPT_STATUSES, UNFINISHED_STATUSES, type Status } from '../../domain/status.ts';
import { counted, duration, grouped } from '../../domain/words.ts';
import { MAX_GROUPED_FAILURES } from '../../monitor/ports/store.ts';
import type {
  CauseList,
  CauseRow,
  ExperimentRow,
  FailureRow,
  StatusRow,
  TransitionRow,
} from '../../monitor/ports/store.ts';
import { waitOf, type ProjectView, type Wait } from './model.ts';
import { badge, bar, legend } from './plot.ts';
import {
  dayText,
  expectationText,
  shareText,
  shortUntrusted,
  timeWithAge,
  untrustedMessage,
  untrustedName,
  utcTime,
  type Html,
} from './text.ts';

/** Maximum length of the message of a cause when it is unfolded. */
const CAUSE_MESSAGE = 1000;
const WAITING = UNFINISHED_STATUSES.join(' or ');
const NONE = html`<p class="quiet">None.</p>`;
const STUCK = html`<strong class="stuck"><span aria-hidden="true">!</span> stuck</strong>`;

/** The project, the experiment or the prompt that a page is about. The overview is about none, and has rows of all. */
export interface Subject {
  readonly project?: string;
  readonly experiment?: string;
  readonly prompt?: string;
}

/** Page that a list is shown on. */
export interface ListContext extends Subject {
  readonly now: number;
  /** Time for which the store keeps transitions, ms. */
  readonly retentionMs: number;
  /** Template of the address of a prompt at the service; undefined without one. */
  readonly promptUrl: string | undefined;
  /** Relative path of the overview, `./` or `../`: a proxy may serve the page under another path. */
  readonly root: string;
  /** The configured projects of the page. */
  readonly views: readonly ProjectView[];
}

/** A name that is cut, linked if it has a page. */
function linkTo(path: string | undefined, name: string, root: string): Html {
  const { shown } = shortUntrusted(name);
  return path === undefined ? shown : html`<a href="${root}${path}">${shown}</a>`;
}

export function projectLink(id: string, root: string): Html {
  return linkTo(projectPath(id), id, root);
}

export function experimentLink(project: string, experiment: string, root: string): Html {
  return linkTo(experimentPath(project, experiment), experiment, root);
}

/** The experiment of a prompt, where it is not that of the page. */
function experimentLine(
  { project, experiment }: Pick<StatusRow, 'project' | 'experiment'>,
  { experiment: shown, root }: ListContext,
): Html | '' {
  if (experiment === undefined || shown !== undefined) return '';
  return html`<div class="quiet">in ${experimentLink(project, experiment, root)}</div>`;
}

/** Failures, newest first, each with its error_info; `whole` is the maximum length of an unfolded message. */
export function failureList(
  rows: readonly FailureRow[],
  whole: number,
  context: ListContext,
): Html {
  if (rows.length === 0) return NONE;
  return html`<ol class="failures">
    ${rows.map(
      (row) =>
        html`<li>
          <div class="head">
            ${badge('FAILED')}
            ${context.project === undefined ? projectLink(row.project, context.root) : ''}
            ${context.prompt === undefined ? html`<div class="id">${promptId(row, context)}</div>` : ''}
            ${timeWithAge(row.at, context.now)}
          </div>
          ${context.prompt === undefined ? html`${nameLine(row.promptName)} ${experimentLine(row, context)}` : ''}
          ${failureDetails(row, whole)} ${causeLine(row, context)}
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

/** On the page of a prompt, the cause of a failure. */
function causeLine({ project, cause }: FailureRow, { prompt, root }: ListContext): Html | '' {
  if (prompt === undefined || cause === undefined) return '';
  const path = `${root}api/v1/failures?${parameters({ project, cause })}`;
  return html`<p class="quiet">
    Cause <code>${cause}</code>: <a href="${path}">all its failures as JSON</a>
  </p>`;
}

/**
 * Causes of settled failures, each with its share of them, most frequent first: of the last day, or all those of the experiment of
 * the page.
 */
export function causeList({ causes, others }: CauseList, context: ListContext): Html {
  const { project, experiment, root, now } = context;
  const isOfDay = experiment === undefined;
  const scope = isOfDay ? `of the last ${dayText(context.retentionMs)}` : 'of this experiment';
  if (causes.length === 0) {
    return html`<p class="quiet">No failure ${scope} has a known cause.</p>`;
  }
  const total = causes.reduce((sum, { count }) => sum + count, others.count);
  const pathOf = (cause: string) =>
    `${root}api/v1/failures?${parameters({ project, experiment, cause })}`;
  const rows = causes.map((row): Row => {
    const projects =
      project === undefined
        ? html`<div class="quiet">in ${counted(row.projects, 'project')}</div>`
        : '';
    return [
      causeName(row, isOfDay && row.isNew),
      html`${shareOf(row.count, total, pathOf(row.cause))} ${projects}`,
      html`${timeWithAge(row.lastAt, now)}
      ${isOfDay && row.isNew ? html`<div class="quiet">first ${utcTime(row.firstAt)}</div>` : ''}`,
    ];
  });
  if (others.count > 0) {
    const name = html`${counted(others.causes, 'other cause')}`;
    rows.push([name, shareOf(others.count, total), html``]);
  }
  const newest = total < MAX_GROUPED_FAILURES ? '' : `newest ${grouped(total)} `;
  return html`${table(
      `Causes of the ${newest}failures ${scope}, most frequent first`,
      ['Cause', 'Failures', 'Last seen'],
      rows,
    )}
    <p class="quiet">
      Failures have the same cause if their messages differ only in what varies. The newest message
      is shown, and below it the shape of all, with <code>&lt;*&gt;</code> for what varies.
      ${isOfDay ? 'A cause is new if the store has no earlier failure with it.' : ''} A failure
      counts as soon as its error_info is known.
    </p>`;
}

function causeName({ cause, errorInfo }: CauseRow, isNew: boolean): Html {
  const message = errorInfo?.error_msg;
  const { shape } = causeOf(errorInfo);
  return html`<div class="head">
      ${isNew ? html`<strong class="is-new">new</strong>` : ''}
      <span class="error-id"
        >${errorInfo?.error_id ? untrustedName(errorInfo.error_id) : 'no error_id'}</span
      >
      <code class="quiet">${cause}</code>
    </div>
    <div>
      ${message ? untrustedMessage(message, CAUSE_MESSAGE) : html`<span class="quiet">no error_msg</span>`}
    </div>
    ${shape === '' || shape === message ? '' : html`<div class="quiet">${untrustedName(shape)}</div>`}`;
}

function shareOf(count: number, total: number, path?: string): Html {
  const text = counted(count, 'failure');
  return html`${path === undefined ? text : html`<a href="${path}">${text}</a>`},
    ${shareText(count, total)}
    <svg class="bar share" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">
      <rect class="none" width="100" height="20" />
      <rect class="FAILED" width="${((count / total) * 100).toFixed(2)}" height="20" />
    </svg>`;
}

export function waitingTable(rows: readonly StatusRow[], context: ListContext): Html {
  if (rows.length === 0) return html`<p class="quiet">No prompt is ${WAITING}.</p>`;
  return table(
    `Prompts that are ${WAITING}, longest first`,
    ['Prompt', 'Status', 'Waiting'],
    rows.map((row) => [
      promptCell(row, context),
      badge(row.status),
      html`${waitText(waitIn(row, context))}
        <div class="quiet">since ${utcTime(row.since)}</div>`,
    ]),
  );
}

/** `for 3 h 40 min, usually 20 min, limit 1 h (learned)`, with a mark if the prompt is stuck. */
export function waitText({ ms, expectation, isStuck }: Wait): Html {
  const expected = expectation === undefined ? '' : `, ${expectationText(expectation)}`;
  return html`for <strong>${duration(ms)}</strong>${expected} ${isStuck ? STUCK : ''}`;
}

function waitIn(row: StatusRow, { views, now }: ListContext): Wait {
  const view = views.find(({ watched }) => watched.id === row.project);
  return waitOf(row, view, now);
}

export function transitionTable(rows: readonly TransitionRow[], context: ListContext): Html {
  return table(
    'Transitions, newest first',
    ['Prompt or dataset', 'Transition', 'Seen'],
    rows.map((row) => {
      const isDataset = row.kind === 'dataset';
      const id = isDataset
        ? untrustedName(row.id)
        : promptId({ ...row, promptId: row.id }, context);
      return [
        html`${isDataset ? html`<span class="quiet">dataset</span>` : ''}
        ${idCell(id, row.project, context)}`,
        html`${badge(row.from)} → ${badge(row.to)}`,
        timeWithAge(row.at, context.now),
      ];
    }),
  );
}

/** Prompts of one project with their status. */
export function promptTable(rows: readonly StatusRow[], context: ListContext): Html {
  return table(
    'Prompts, newest change first',
    ['Prompt', 'Status', 'Since'],
    rows.map((row) => [
      promptCell(row, context),
      html`${badge(row.status)} ${waitIn(row, context).isStuck ? STUCK : ''}
      ${row.statusRaw === undefined ? '' : html`<div class="quiet">${untrustedName(row.statusRaw)}</div>`}
      ${row.missing > 0 ? html`<div class="quiet">not in the last listing</div>` : ''}`,
      timeWithAge(row.since, context.now),
    ]),
  );
}

const STATES: Readonly<Record<ExperimentState, readonly [sign: string, className: string]>> = {
  running: ['▶', 'RUNNING'],
  ended: ['■', ''],
  finished: ['✓', 'COMPLETED'],
};

/** `▶ running for 12 min`, `✓ finished after 41 min`, and of one that does not finish `■ ended before a move was seen`. */
export function experimentState({ state, startedAt, endedAt }: ExperimentRow, now: number): Html {
  const [sign, className] = STATES[state];
  const [word, until] = state === 'running' ? ['for', now] : ['after', endedAt];
  // One poll can see all of it: it took less than the time between two polls.
  const isTimed = startedAt !== undefined && until !== undefined && until > startedAt;
  const known = isTimed ? `${word} ${duration(until - startedAt)}` : '';
  const took = state === 'ended' && startedAt === undefined ? 'before a move was seen' : known;
  return html`<span class="status ${className}"
      ><span aria-hidden="true">${sign}</span> ${state}</span
    >
    ${took}`;
}

/** Counts of an experiment, as a bar and in words. */
export function experimentCounts(counts: PromptCounts, linkOf?: (status: Status) => string): Html {
  const shown = new Map(PROMPT_STATUSES.map((status) => [status, counts[status]] as const));
  const { COMPLETED, FAILED } = counts;
  return html`${bar(shown)} ${legend(shown, linkOf)}
  ${FAILED === 0 ? '' : html`<div class="quiet">${shareText(FAILED, COMPLETED + FAILED)} of finished prompts failed</div>`}`;
}

/** Experiments of a project, and its prompts without one. */
export function experimentTable(
  rows: readonly ExperimentRow[],
  others: PromptCounts,
  { project, root, now }: ListContext,
): Html {
  const cells = rows.map((row): Row => {
    const last = row.movedAt === undefined ? '' : html`last move ${timeWithAge(row.movedAt, now)}`;
    return [
      experimentLink(row.project, row.experiment, root),
      experimentCounts(row.counts),
      html`${experimentState(row, now)}
        <div class="quiet">${last}</div>`,
    ];
  });
  if (PROMPT_STATUSES.some((status) => others[status] > 0)) {
    const path = `${root}api/v1/prompts?${parameters({ project, experiment: '' })}`;
    cells.push([html`<a href="${path}">none</a>`, experimentCounts(others), html``]);
  }
  return table('Experiments, last move first', ['Experiment', 'Prompts', 'State'], cells);
}

/** Parameters of a URL, without those that are undefined. */
export function parameters(given: Readonly<Record<string, string | undefined>>): string {
  const set = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) if (value !== undefined) set.set(name, value);
  return set.toString();
}

function promptCell(row: StatusRow, context: ListContext): Html {
  return html`${idCell(promptId(row, context), row.project, context)} ${nameLine(row.promptName)}
  ${experimentLine(row, context)}`;
}

/** The id of a prompt, linked to its page, with a link to the service. */
function promptId(row: Pick<StatusRow, 'project' | 'promptId'>, context: ListContext): Html {
  const { project, promptId: id } = row;
  return html`${linkTo(promptPath(project, id), id, context.root)} ${serviceLink(row, context, '↗')}`;
}

/** A link to a prompt at the service, where it has an address. */
export function serviceLink(
  row: Pick<StatusRow, 'project' | 'promptId'>,
  { promptUrl: template }: ListContext,
  text: string,
): Html | undefined {
  const url = template === undefined ? undefined : promptUrl(template, row);
  if (url === undefined) return undefined;
  const name = 'Open at the service';
  return html`<a class="out" href="${url}" rel="noreferrer" title="${name}" aria-label="${name}"
    >${text}</a
  >`;
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

/** The cells of a row, of which the first one names it. */
export type Row = readonly [name: Html, ...cells: Html[]];

/** Repeats the implicit roles: on a phone the cells of a row are stacked by CSS, and some browsers then drop the roles. */
export function table(caption: string, headings: readonly string[], rows: readonly Row[]): Html {
  if (rows.length === 0) return NONE;
  return html`<table role="table">
    <caption>
      ${caption}
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        ${headings.map((heading) => html`<th role="columnheader" scope="col">${heading}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows.map(
        ([name, ...cells]) =>
          html`<tr role="row">
            <th role="rowheader" scope="row">${name}</th>
            ${cells.map((cell) => html`<td role="cell">${cell}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

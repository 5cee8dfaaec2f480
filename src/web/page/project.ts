import { html } from 'hono/html';
import { PROMPT_STATUSES, UNFINISHED_STATUSES } from '../../domain/status.ts';
import type { PromptStatus, UnfinishedStatus } from '../../domain/status.ts';
import { duration } from '../../domain/words.ts';
import type { FailureRow, StatusRow } from '../../monitor/ports/store.ts';
import type { ShownProject } from '../content.ts';
import { countsOf, polls, stateLine, unmonitoredSince } from './card.ts';
import { facts, section, type Page } from './layout.ts';
import {
  causeList,
  experimentTable,
  failureList,
  parameters,
  projectLink,
  promptTable,
  transitionTable,
  waitingTable,
  type ListContext,
} from './lists.ts';
import { historyOf, ROWS_SHOWN, type PageData, type ProjectView, type Reading } from './model.ts';
import { plot } from './plot.ts';
import {
  expectationText,
  failuresText,
  objectiveText,
  plainName,
  STATE_WORDS,
  untrustedName,
  type Html,
} from './text.ts';

/** Characters of a message that unfold: more than the longest error_msg has, unless some of them are escaped. */
const WHOLE_MESSAGE = 8200;

/** Restricts the list of prompts. */
export interface StatusQuery {
  /** Undefined for all. */
  readonly status: PromptStatus | undefined;
  /** A status that was asked for and does not exist. */
  readonly unknownStatus: string | undefined;
}

/** The page of one project. */
export function projectPage(
  { views: [view], store }: PageData,
  { project, ...query }: StatusQuery & { readonly project: string },
  canPoll: boolean,
  context: ListContext,
): Page {
  const verdict = verdictOf(view);
  const failedText = view?.failures && failuresText(view.failures, context.retentionMs);
  return {
    title: `${verdict} · ${plainName(project)} · evalwatch`,
    summary: failedText === undefined ? `${verdict}.` : `${verdict}. ${failedText}.`,
    main: html`${wayBack('../')}
      <h1>${untrustedName(project)}</h1>
      ${
        view === undefined
          ? html`<p class="state warn">
              <strong>No longer in the configuration</strong>: it is not polled.
            </p>`
          : html`${stateLine(view, context.now)}
            ${failedText === undefined ? '' : html`<p class="lead">${failedText}</p>`}
            ${polls(view, context.now)}
            ${canPoll && view.state !== 'paused' ? pollButton(project) : ''}
            ${section('counts', 'Prompts by status', counts(view, store, context))}
            ${section('expected', 'What is expected', expected(view.watched))}`
      }
      ${
        store === undefined
          ? html`<p class="state bad"><strong>✗ The store cannot be read</strong></p>`
          : lists(store, query, context)
      }`,
  };
}

/** Links to the overview and, from an experiment, to its project. */
export function wayBack(root: string, project?: string): Html {
  return html`<nav class="way" aria-label="Back">
    <a href="${root}">← All projects</a>
    ${project === undefined ? '' : html`/ ${projectLink(project, root)}`}
  </nav>`;
}

/** On the page of something in a project, says that it may have moved since the project was polled. */
export function staleNote(view: ProjectView | undefined): Html | '' {
  const state = view?.state ?? 'no longer configured';
  if (['up', 'new', 'unknown'].includes(state)) return '';
  return html`<p class="state warn">
    <strong>May be out of date</strong>: its project is ${state}.
  </p>`;
}

/** Works without a script; the server refuses the form if a page of another site sends it. */
function pollButton(project: string): Html {
  return html`<form method="post" action="../-/poll?project=${encodeURIComponent(project)}">
    <button>Poll now</button>
  </form>`;
}

function counts(view: ProjectView, store: PageData['store'], context: ListContext): Html {
  const history = historyOf(view, store, context.now);
  return html`${countsOf(view, (each) => `?status=${each}#prompts`)}
  ${
    history &&
    html`${plot(history, context.now, unmonitoredSince(view))}
      <p class="quiet">
        Statuses of the prompts that are listed now, over the last 24 hours. The store keeps
        transitions for ${duration(context.retentionMs)}.
      </p>`
  }`;
}

function lists(
  store: NonNullable<PageData['store']>,
  query: StatusQuery,
  context: ListContext,
): readonly Html[] {
  const { experiments } = store;
  return [
    experiments.length === 0
      ? html``
      : section(
          'experiments',
          'Experiments',
          html`${experimentTable(experiments, store.withoutExperiment, context)}
          ${moreRows('experiments', experiments, context)}`,
        ),
    failureSections(store, context),
    section('waiting', 'Longest waiting', waitingTable(store.waiting, context)),
    promptSection(store.prompts, query, context),
    section(
      'transitions',
      'Recent transitions',
      html`${transitionTable(store.transitions, context)}
      ${moreRows('transitions', store.transitions, context)}`,
    ),
  ];
}

/** Where to read more, if a list has as many rows as a page shows. */
export function moreRows(
  name: keyof typeof ROWS_SHOWN.project,
  rows: readonly unknown[],
  { project, experiment, prompt, root }: ListContext,
  shown: number = ROWS_SHOWN.project[name],
): Html | '' {
  if (rows.length < shown) return '';
  const path = `${root}api/v1/${name}?${parameters({ project, experiment, prompt_id: prompt })}`;
  return html`<p class="quiet">
    Only the newest are shown. <a href="${path}">All ${name} as JSON</a>
  </p>`;
}

/** The failures of the page, by cause and one by one. */
export function failureSections(
  { causes, failures }: Pick<Reading, 'causes' | 'failures'>,
  context: ListContext,
): Html {
  return html`${section('causes', 'Causes of failures', causeList(causes, context))}
  ${failureSection(failures, context)}`;
}

export function failureSection(failures: readonly FailureRow[], context: ListContext): Html {
  return section(
    'failures',
    'Newest failures',
    html`${failureList(failures, WHOLE_MESSAGE, context)} ${moreRows('failures', failures, context)}`,
  );
}

/** The prompts of the page, in one status or all. */
export function promptSection(
  rows: readonly StatusRow[],
  { status, unknownStatus }: StatusQuery,
  context: ListContext,
): Html {
  return section(
    'prompts',
    `Prompts${status === undefined ? '' : ` that are ${status}`}`,
    html`${status === undefined ? '' : html`<p><a href="?#prompts">Show all</a></p>`}
    ${unknownStatus === undefined ? '' : noSuchStatus(unknownStatus)} ${promptTable(rows, context)}
    ${moreRows('prompts', rows, context)}`,
  );
}

function noSuchStatus(text: string): Html {
  return html`<div class="state warn">
    There is no status ${untrustedName(text)}, so all prompts are listed. The statuses are
    ${PROMPT_STATUSES.join(', ')}.
  </div>`;
}

/** What is expected of the prompts of a project, and its team. */
function expected({ team, expect, expectations }: ShownProject): Html {
  const limit = (status: UnfinishedStatus) =>
    expectations ? expectationText(expectations[status]) : 'not known yet';
  return html`${facts('polls', [
      ['Team', team || 'none'],
      ...UNFINISHED_STATUSES.map((status) => [status, limit(status)] as const),
      ['Objective', objectiveText(expect.maxFailureRatio)],
    ])}
    <p class="quiet">
      A limit is how long a prompt may stay in a status. evalwatch learns it from the prompts of
      this project, unless it is configured; the default applies until enough of them are known.
    </p>`;
}

function verdictOf(view: ProjectView | undefined): string {
  if (view === undefined) return 'Not configured';
  if (view.hasStuckPrompts) return 'Up, with stuck prompts';
  return STATE_WORDS[view.state];
}

/** The page of a project that is neither configured nor stored. */
export function unknownProjectPage(project: string, root: string): Page {
  const heading = html`${wayBack(root)}
    <h1>${untrustedName(project)}</h1>`;
  const why =
    'It is neither in the configuration nor in the store. If it was removed, the store has deleted its rows by now.';
  return missingPage('project', 'evalwatch', heading, why);
}

/** The page of what is not in the store; `why` is undefined while the store cannot be read. */
export function missingPage(what: string, of: string, heading: Html, why?: string): Page {
  const summary = why === undefined ? 'The store cannot be read' : `Unknown ${what}`;
  return {
    isUnknown: why !== undefined,
    title: `${summary} · ${of}`,
    summary: `${summary}.`,
    main: html`${heading}
      <p class="state bad"><strong>✗ ${summary}</strong></p>
      <p>${why}</p>`,
  };
}

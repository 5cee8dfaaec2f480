import { unlessStoreFails } from '../../monitor/errors.ts';
import { html } from 'hono/html';
import { PROMPT_STATUSES, UNFINISHED_STATUSES, type Status } from '../../domain/status.ts';
import type { FailureRow, StatusRow, TransitionRow } from '../../monitor/ports/store.ts';
import type { PageContent, ShownProject } from './content.ts';
import type { Page } from './layout.ts';
import { causeList } from './parts/causes.ts';
import {
  failureList,
  promptTable,
  transitionTable,
  waitingTable,
  type ListOptions,
} from './parts/lists.ts';
import { expectationText, objectiveText } from './text/expectation-words.ts';
import { failuresText } from './text/failure-words.ts';
import {
  historyOf,
  longestWaiting,
  read,
  viewsOf,
  type ProjectView,
  type Reading,
} from './model/overview-model.ts';
import { plot } from './parts/plot.ts';
import { unmonitoredSince, countsOf, polls, stateLine } from './parts/project-card.ts';
import { duration } from './text/time.ts';
import { untrustedName } from './text/untrusted-text.ts';
import type { Html } from './html.ts';

const FAILURES_SHOWN = 20;
const TRANSITIONS_SHOWN = 30;
const PROMPTS_SHOWN = 50;
/** Budget of a message: more than the longest error_msg has, unless characters of it need marks. */
const WHOLE_MESSAGE = 8200;

interface ProjectDetails {
  /** Undefined if the project is no longer configured. */
  readonly view: ProjectView | undefined;
  /** Undefined when the store cannot be read. */
  readonly store: (Reading & Rows) | undefined;
}

interface Rows {
  readonly failures: readonly FailureRow[];
  readonly transitions: readonly TransitionRow[];
  readonly waiting: readonly StatusRow[];
  readonly prompts: readonly StatusRow[];
}

/** Reads the content of the page of a project; undefined if the project is neither configured nor stored. */
export async function readProject(
  content: PageContent,
  project: string,
  { status, now }: { status: Status | undefined; now: number },
): Promise<ProjectDetails | undefined> {
  const { store } = content;
  const configured = content.projects().filter(({ id }) => id === project);
  const isKnown = configured.length > 0 || (await store.projects()).includes(project);
  if (!isKnown) return undefined;
  const found = await unlessStoreFails(async () => {
    const reading = await read(content, now, project);
    const [failures, transitions, prompts, waiting] = await Promise.all([
      store.failures({ project, limit: FAILURES_SHOWN }),
      store.transitions({ project, limit: TRANSITIONS_SHOWN }),
      store.statuses({ project, status, limit: PROMPTS_SHOWN }),
      longestWaiting(store, reading.snapshot.projects),
    ]);
    return { ...reading, failures, transitions, prompts, waiting };
  });
  const [view] = viewsOf(configured, found, now);
  return { view, store: found };
}

interface ProjectPageOptions extends ListOptions {
  readonly project: string;
  /** Restricts the list of prompts; undefined lists all. */
  readonly status: Status | undefined;
  /** A status that was asked for and does not exist. */
  readonly unknownStatus: string | undefined;
  /** Whether the page has a button that polls the project. */
  readonly canPoll: boolean;
}

/** The page of one project. */
export function projectPage({ view, store }: ProjectDetails, options: ProjectPageOptions): Page {
  const { project, now, retentionMs, promptUrl, canPoll } = options;
  const verdict = verdictOf(view);
  const failedText = view?.failures && failuresText(view.failures, retentionMs);
  const history = view && historyOf(view, store, now);
  const views = new Map(view && [[project, view]]);
  const context = { now, root: '../', project, views, promptUrl };
  const json = (path: string) => `../api/v1/${path}?project=${encodeURIComponent(project)}`;
  return {
    title: `${verdict} · ${project} · evalwatch`,
    summary: failedText === undefined ? `${verdict}.` : `${verdict}. ${failedText}.`,
    main: html`<nav class="way" aria-label="Back"><a href="../">← All projects</a></nav>
      <h1>${untrustedName(project)}</h1>
      ${
        view === undefined
          ? html`<p class="state warn">
              <strong>No longer in the configuration</strong>: it is not polled.
            </p>`
          : html`${stateLine(view, now)}
              ${failedText === undefined ? '' : html`<p class="lead">${failedText}</p>`}
              ${polls(view, now)} ${canPoll ? pollButton(project) : ''}
              <section aria-labelledby="counts">
                <h2 id="counts">Prompts by status</h2>
                ${countsOf(view, (each) => `?status=${each}#prompts`)}
                ${
                  history === undefined
                    ? ''
                    : html`${plot(history, now, view && unmonitoredSince(view))}
                        <p class="quiet">
                          Statuses of the prompts that are listed now, over the last 24 hours. The
                          store keeps transitions for ${duration(retentionMs)}.
                        </p>`
                }
              </section>
              ${expected(view.watched)}`
      }
      ${
        store === undefined
          ? html`<p class="state bad"><strong>✗ The store cannot be read</strong></p>`
          : rows(store, { ...options, context, json })
      }`,
  };
}

/** Works without a script; the server refuses the form if a page of another site sends it. */
function pollButton(project: string): Html {
  return html`<form method="post" action="../-/poll?project=${encodeURIComponent(project)}">
    <button>Poll now</button>
  </form>`;
}

interface RowsOptions extends ProjectPageOptions {
  readonly context: Parameters<typeof promptTable>[1];
  /** Address of all rows of a kind in the API. */
  readonly json: (path: string) => string;
}

function rows(
  store: Reading & Rows,
  { status, unknownStatus, context, json, retentionMs }: RowsOptions,
): Html {
  const more = (path: string) =>
    html`<p class="quiet">
      Only the newest are shown. <a href="${json(path)}">All ${path} as JSON</a>
    </p>`;
  return html`<section aria-labelledby="causes">
      <h2 id="causes">Causes of failures</h2>
      ${causeList(store.causes, retentionMs, context)}
    </section>
    <section aria-labelledby="failures">
      <h2 id="failures">Newest failures</h2>
      ${failureList(store.failures, WHOLE_MESSAGE, context)}
      ${store.failures.length === FAILURES_SHOWN ? more('failures') : ''}
    </section>
    <section aria-labelledby="waiting">
      <h2 id="waiting">Longest waiting</h2>
      ${waitingTable(store.waiting, context)}
    </section>
    <section aria-labelledby="prompts">
      <h2 id="prompts">Prompts${status === undefined ? '' : ` that are ${status}`}</h2>
      ${status === undefined ? '' : html`<p><a href="?#prompts">Show all</a></p>`}
      ${unknownStatus === undefined ? '' : noSuchStatus(unknownStatus)}
      ${promptTable(store.prompts, context)}
      ${store.prompts.length === PROMPTS_SHOWN ? more('prompts') : ''}
    </section>
    <section aria-labelledby="transitions">
      <h2 id="transitions">Recent transitions</h2>
      ${transitionTable(store.transitions, context)}
      ${store.transitions.length === TRANSITIONS_SHOWN ? more('transitions') : ''}
    </section>`;
}

function noSuchStatus(text: string): Html {
  return html`<div class="state warn">
    There is no status ${untrustedName(text)}, so all prompts are listed. The statuses are
    ${PROMPT_STATUSES.join(', ')}.
  </div>`;
}

/** What is expected of the prompts of a project, and its team. */
function expected({ team, expect, expectations }: ShownProject): Html {
  return html`<section aria-labelledby="expected">
    <h2 id="expected">What is expected</h2>
    <dl class="polls">
      <dt>Team</dt>
      <dd>${team || 'none'}</dd>
      ${UNFINISHED_STATUSES.map(
        (status) =>
          html`<dt>${status}</dt>
            <dd>${expectations ? expectationText(expectations[status]) : 'not known yet'}</dd>`,
      )}
      <dt>Objective</dt>
      <dd>${objectiveText(expect.maxFailureRatio)}</dd>
    </dl>
    <p class="quiet">
      A limit is how long a prompt may stay in a status. evalwatch learns it from the prompts of
      this project, unless it is configured; the default applies until enough of them are known.
    </p>
  </section>`;
}

function verdictOf(view: ProjectView | undefined): string {
  if (view === undefined) return 'Not configured';
  if (view.hasStuckPrompts) return 'Up, with stuck prompts';
  return { up: 'Up', down: 'Down', late: 'Late', new: 'Not polled yet', unknown: 'Unknown' }[
    view.state.kind
  ];
}

/** The page of a project that is neither configured nor stored. */
export function unknownProjectPage(project: string): Page {
  return {
    title: 'Unknown project · evalwatch',
    summary: 'Unknown project.',
    main: html`<nav class="way" aria-label="Back"><a href="../">← All projects</a></nav>
      <h1>Unknown project</h1>
      <div>
        There is no project ${untrustedName(project)} in the configuration or in the store. If it
        was removed, the store has deleted its rows by now.
      </div>`,
  };
}

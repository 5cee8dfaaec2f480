import { html } from 'hono/html';
import type { FailureRow } from '../../monitor/ports/store.ts';
import type { MonitorState } from './content.ts';
import type { Page } from './layout.ts';
import { causeList } from './parts/causes.ts';
import {
  failureList,
  projectLink,
  transitionTable,
  waitingTable,
  type ListContext,
  type ListOptions,
} from './parts/lists.ts';
import { monitorChecks, type Check } from './parts/monitor-checks.ts';
import { allFailures, failureCount, failuresText } from './text/failure-words.ts';
import {
  historyOf,
  PROJECTS_PER_PAGE,
  type Overview,
  type ProjectView,
} from './model/overview-model.ts';
import { projectCard } from './parts/project-card.ts';
import { isUnmonitored } from './model/project-state.ts';
import { ago } from './text/time.ts';
import type { Html } from './html.ts';
import { capitalized, counted, grouped } from './text/words.ts';

/** Characters of a message that unfold on the overview; the page of the project has all of them. */
const WHOLE_MESSAGE = 4000;

export interface OverviewQuery {
  /** Only projects whose id contains this. */
  readonly find: string;
  /** Number of the page, from 1. */
  readonly page: number;
}

/** The overview: health of evalwatch, projects, and the newest failures and transitions. */
export function overviewPage(
  overview: Overview,
  monitor: MonitorState,
  {
    query,
    isReady,
    now,
    retentionMs,
    promptUrl,
  }: { query: OverviewQuery; isReady: boolean } & ListOptions,
): Page {
  const checks = monitorChecks(overview, monitor, isReady, now);
  const verdict = verdictOf(checks, overview.projects);
  const failures = allFailures(overview.projects);
  const failedText = failures && failuresText(failures, retentionMs);
  const views = new Map(overview.projects.map((view) => [view.watched.id, view]));
  const context: ListContext = { now, root: './', project: undefined, views, promptUrl };
  const stuck = overview.projects.filter(({ hasStuckPrompts }) => hasStuckPrompts).length;
  const stuckText = stuck === 0 ? '' : `stuck prompts in ${counted(stuck, 'project')}`;
  const { store } = overview;
  return {
    title: [verdict, failures && failureCount(failures), stuckText, 'evalwatch']
      .filter(Boolean)
      .join(' · '),
    summary: [verdict, failedText, capitalized(stuckText)]
      .filter(Boolean)
      .map((sentence) => `${sentence}.`)
      .join(' '),
    main: html`<h1>${verdict}</h1>
      ${
        store === undefined
          ? ''
          : html`<p class="lead">
                ${failedText}${newest(store.failures, now)}
                ${stuck === 0 ? '' : html`<a class="stuck" href="#waiting">${capitalized(stuckText)}</a>.`}
              </p>
              <nav class="sections" aria-label="On this page">
                <a href="#monitor">Health</a> <a href="#projects">Projects</a>
                <a href="#causes">Causes</a> <a href="#failures">Failures</a>
                <a href="#waiting">Waiting</a> <a href="#transitions">Transitions</a>
              </nav>`
      }
      <section aria-labelledby="monitor">
        <h2 id="monitor">Health of evalwatch</h2>
        <ul class="checks">
          ${checks.map((check) => checkItem(check))}
        </ul>
      </section>
      ${projectSection(overview, query, now)}
      ${
        store === undefined
          ? ''
          : html`<section aria-labelledby="causes">
                <h2 id="causes">Causes of failures</h2>
                ${causeList(store.causes, retentionMs, context)}
              </section>
              <section aria-labelledby="failures">
                <h2 id="failures">Newest failures</h2>
                ${failureList(store.failures, WHOLE_MESSAGE, context)}
              </section>
              <section aria-labelledby="waiting">
                <h2 id="waiting">Longest waiting</h2>
                ${waitingTable(store.waiting, context)}
              </section>
              <section aria-labelledby="transitions">
                <h2 id="transitions">Recent transitions</h2>
                ${transitionTable(store.transitions, context)}
              </section>`
      }`,
  };
}

function newest([failure]: readonly FailureRow[], now: number): Html {
  return failure === undefined
    ? html`.`
    : html`, the newest ${ago(failure.at, now)} in ${projectLink(failure.project, './')}.`;
}

/** Headline: what fails, or that nothing does. */
function verdictOf(checks: readonly Check[], projects: readonly ProjectView[]): string {
  const blind = projects.filter(({ state }) => isUnmonitored(state)).length;
  const broken = checks.filter(({ level, name }) => level === 'bad' && name !== 'Projects');
  const parts = [
    ...broken.map(({ name }) => `${name.toLowerCase()} failing`),
    ...(blind === 0
      ? []
      : [`${grouped(blind)} of ${counted(projects.length, 'project')} not monitored`]),
  ];
  if (parts.length === 0 && checks.some(({ level }) => level === 'warn')) {
    return 'evalwatch monitors every project, with a warning';
  }
  if (parts.length === 0) return 'evalwatch is healthy and monitors every project';
  return capitalized(parts.join(', '));
}

const LEVELS = {
  ok: { sign: '✓', word: 'ok' },
  warn: { sign: '!', word: 'warning' },
  bad: { sign: '✗', word: 'error' },
} as const;

function checkItem({ name, level, text }: Check): Html {
  return html`<li class="check ${level}">
    <span class="level"
      ><span aria-hidden="true">${LEVELS[level].sign}</span
      ><span class="unseen">${LEVELS[level].word}:</span></span
    >
    <div><b>${name}:</b> ${text}</div>
  </li>`;
}

function projectSection({ projects, store }: Overview, query: OverviewQuery, now: number): Html {
  const wanted = query.find.toLowerCase();
  const found = projects.filter(({ watched }) => watched.id.toLowerCase().includes(wanted));
  const pages = Math.max(1, Math.ceil(found.length / PROJECTS_PER_PAGE));
  const page = Math.min(query.page, pages);
  const first = (page - 1) * PROJECTS_PER_PAGE;
  const shown = found.slice(first, first + PROJECTS_PER_PAGE);
  return html`<section aria-labelledby="projects">
    <h2 id="projects">Projects</h2>
    ${projects.length > PROJECTS_PER_PAGE ? finder(query.find) : ''}
    ${
      shown.length === 0
        ? html`<p>No project id contains this text.</p>`
        : html`<ul class="projects">
            ${shown.map((view) => projectCard(view, historyOf(view, store, now), now))}
          </ul>`
    }
    ${pages > 1 ? pager({ ...query, page }, pages, found.length) : ''}
  </section>`;
}

function finder(find: string): Html {
  return html`<form role="search" method="get">
    <label for="find">Find by id</label>
    <input id="find" name="find" type="search" value="${find}" autocomplete="off" />
    <button>Find</button>
  </form>`;
}

function pager({ find, page }: OverviewQuery, pages: number, total: number): Html {
  const to = (other: number) =>
    `?${new URLSearchParams({ ...(find === '' ? {} : { find }), page: `${other}` }).toString()}`;
  return html`<nav class="pager" aria-label="Pages of projects">
    ${page > 1 ? html`<a rel="prev" href="${to(page - 1)}">Previous</a>` : ''}
    <span>Page ${grouped(page)} of ${grouped(pages)}, ${counted(total, 'project')}</span>
    ${page < pages ? html`<a rel="next" href="${to(page + 1)}">Next</a>` : ''}
  </nav>`;
}

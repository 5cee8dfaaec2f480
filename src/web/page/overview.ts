import { html } from 'hono/html';
import { counted, grouped } from '../../domain/words.ts';
import { PROJECT_STATES } from '../../rows/fields.ts';
import type { MonitorState } from '../content.ts';
import { projectCard } from './card.ts';
import { monitorChecks, type Check } from './checks.ts';
import { section, type Page } from './layout.ts';
import {
  causeList,
  failureList,
  parameters,
  projectLink,
  transitionTable,
  waitingTable,
  type ListContext,
} from './lists.ts';
import { historyOf, isUnmonitored, sumFailures } from './model.ts';
import type { PageData, ProjectView } from './model.ts';
import {
  ago,
  capitalized,
  failureCount,
  failuresText,
  STATE_WORDS,
  untrustedName,
  type Html,
} from './text.ts';

const PROJECTS_PER_PAGE = 24;
/** Characters of a message that unfold on the overview; the page of the project has all of them. */
const WHOLE_MESSAGE = 4000;

/** Which projects the overview shows. */
export interface OverviewQuery {
  /** Only those whose id contains this. */
  readonly find: string;
  /** Only those of this team, and in this state; empty for all. */
  readonly team: string;
  readonly state: string;
  /** Number of the page, from 1. */
  readonly page: number;
}

/** The overview: health of evalwatch, projects, and the newest failures and transitions. */
export function overviewPage(
  data: PageData,
  monitor: MonitorState,
  isScheduling: boolean,
  query: OverviewQuery,
  context: ListContext,
): Page {
  const { store, views } = data;
  const { now, retentionMs } = context;
  const checks = monitorChecks(data, monitor, isScheduling, now);
  const verdict = verdictOf(checks, views);
  const failures = sumFailures(views);
  const failedText = failures && failuresText(failures, retentionMs);
  const stuck = views.filter(({ hasStuckPrompts }) => hasStuckPrompts).length;
  const stuckText = stuck === 0 ? '' : `stuck prompts in ${counted(stuck, 'project')}`;
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
        store &&
        html`<p class="lead">
            ${failedText}${newest(store.failures[0], now)}
            ${stuck === 0 ? '' : html`<a class="stuck" href="#waiting">${capitalized(stuckText)}</a>.`}
          </p>
          <nav class="sections" aria-label="On this page">
            <a href="#monitor">Health</a> <a href="#projects">Projects</a>
            <a href="#causes">Causes</a> <a href="#failures">Failures</a>
            <a href="#waiting">Waiting</a> <a href="#transitions">Transitions</a>
          </nav>`
      }
      ${section(
        'monitor',
        'Health of evalwatch',
        html`<ul class="checks">
          ${checks.map(checkItem)}
        </ul>`,
      )}
      ${section('projects', 'Projects', projects(data, query, now))}
      ${
        store && [
          section('causes', 'Causes of failures', causeList(store.causes, context)),
          section(
            'failures',
            'Newest failures',
            failureList(store.failures, WHOLE_MESSAGE, context),
          ),
          section('waiting', 'Longest waiting', waitingTable(store.waiting, context)),
          section('transitions', 'Recent transitions', transitionTable(store.transitions, context)),
        ]
      }`,
  };
}

function newest(
  failure: { readonly at: number; readonly project: string } | undefined,
  now: number,
): Html {
  return failure === undefined
    ? html`.`
    : html`, the newest ${ago(failure.at, now)} in ${projectLink(failure.project, './')}.`;
}

/** Headline: what fails, or that nothing does. */
function verdictOf(checks: readonly Check[], views: readonly ProjectView[]): string {
  const blind = views.filter(isUnmonitored).length;
  const broken = checks.filter(({ level, name }) => level === 'bad' && name !== 'Projects');
  const parts = [
    ...broken.map(({ name }) => `${name.toLowerCase()} failing`),
    ...(blind === 0
      ? []
      : [`${grouped(blind)} of ${counted(views.length, 'project')} not monitored`]),
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

function projects({ views, store }: PageData, query: OverviewQuery, now: number): Html {
  const find = query.find.toLowerCase();
  const teams = Map.groupBy(views, ({ watched }) => watched.team);
  const team = teams.has(query.team) ? query.team : '';
  const state = PROJECT_STATES.find((each) => each === query.state.toLowerCase());
  const inAnyState = views.filter(
    ({ watched }) =>
      watched.id.toLowerCase().includes(find) && (team === '' || watched.team === team),
  );
  const states = Map.groupBy(inAnyState, (view) => view.state);
  const found = state === undefined ? inAnyState : (states.get(state) ?? []);
  const pages = Math.max(1, Math.ceil(found.length / PROJECTS_PER_PAGE));
  const page = Math.min(query.page, pages);
  const shown = found.slice((page - 1) * PROJECTS_PER_PAGE, page * PROJECTS_PER_PAGE);
  const asked = { find: query.find, team, state: state ?? '', page };
  teams.delete('');
  return html`${views.length > PROJECTS_PER_PAGE || teams.size > 0 ? finder(asked, teams) : ''}
  ${states.size > 1 || state !== undefined ? stateLinks(asked, states, inAnyState.length) : ''}
  ${
    team === query.team
      ? ''
      : html`<div class="state warn">
          There is no team ${untrustedName(query.team)}, so projects of all teams are listed.
        </div>`
  }
  ${
    query.state === '' || state !== undefined
      ? ''
      : html`<div class="state warn">
          There is no state ${untrustedName(query.state)}, so projects in all states are listed. The
          states are ${PROJECT_STATES.join(', ')}.
        </div>`
  }
  ${
    shown.length === 0
      ? html`<p>No project matches. <a href="?#projects">Show all</a></p>`
      : html`<ul class="projects">
          ${shown.map((view) => projectCard(view, historyOf(view, store, now), now))}
        </ul>`
  }
  ${pages > 1 ? pager(asked, pages, found.length) : ''}`;
}

type Counted = ReadonlyMap<string, readonly ProjectView[]>;

function finder({ find, team, state }: OverviewQuery, teams: Counted): Html {
  const names = Array.from(teams.keys()).toSorted();
  return html`<form role="search" method="get" action="#projects" autocomplete="off">
    <label for="find">Find by id</label>
    <input id="find" name="find" type="search" value="${find}" />
    ${
      names.length > 0 &&
      html`<label for="team">Team</label>
        <select id="team" name="team">
          <option value="">All teams</option>
          ${names.map((name) => {
            const chosen = name === team ? html`selected` : '';
            return html`<option value="${name}" ${chosen}>
              ${name} (${grouped(teams.get(name)?.length ?? 0)})
            </option>`;
          })}
        </select>`
    }
    ${state !== '' && html`<input type="hidden" name="state" value="${state}" />`}
    <button>Find</button>
  </form>`;
}

/** Links to the projects in each state, with their number. */
function stateLinks(query: OverviewQuery, states: Counted, total: number): Html {
  const link = (state: string, word: string, count: number) => {
    const current = state === query.state ? html`aria-current="true"` : '';
    return html`<a href="${linkTo({ ...query, state, page: 1 })}" ${current}
      >${word} ${grouped(count)}</a
    >`;
  };
  return html`<nav class="pager" aria-label="Projects by state">
    ${link('', 'All', total)}
    ${PROJECT_STATES.filter((state) => states.has(state) || state === query.state).map((state) =>
      link(state, STATE_WORDS[state], states.get(state)?.length ?? 0),
    )}
  </nav>`;
}

function pager(query: OverviewQuery, pages: number, total: number): Html {
  const { page } = query;
  const to = (other: number) => linkTo({ ...query, page: other });
  return html`<nav class="pager" aria-label="Pages of projects">
    ${page > 1 ? html`<a rel="prev" href="${to(page - 1)}">Previous</a>` : ''}
    <span>Page ${grouped(page)} of ${grouped(pages)}, ${counted(total, 'project')}</span>
    ${page < pages ? html`<a rel="next" href="${to(page + 1)}">Next</a>` : ''}
  </nav>`;
}

function linkTo({ find, team, state, page }: OverviewQuery): string {
  const filter = { find: find || undefined, team: team || undefined, state: state || undefined };
  return `?${parameters({ ...filter, page: page === 1 ? undefined : `${page}` })}#projects`;
}

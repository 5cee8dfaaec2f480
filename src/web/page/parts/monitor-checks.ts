import { html } from 'hono/html';
import type { MonitorState } from '../content.ts';
import type { Overview } from '../model/overview-model.ts';
import { isUnmonitored } from '../model/project-state.ts';
import { utcTime, ago, timeWithAge } from '../text/time.ts';
import { untrustedText } from '../text/untrusted-text.ts';
import type { Html } from '../html.ts';
import { counted, grouped, STORE_FAILURE_WORDS } from '../text/words.ts';

/** State of one part of evalwatch. */
export interface Check {
  readonly name: string;
  readonly level: 'ok' | 'warn' | 'bad';
  readonly text: Html;
}

const RECENT_MS = 60 * 60 * 1000;
/** The same limit as in the alert EvalwatchSchedulerOverrun. */
const MAX_LOST_RUNS = 2;
/** The same limit as in the alert EvalwatchErrorInfoBacklog. */
const MAX_BACKLOG_AGE_MS = 30 * 60 * 1000;

/** Checks each part of evalwatch itself. */
export function monitorChecks(
  { store, projects }: Overview,
  monitor: MonitorState,
  isReady: boolean,
  now: number,
): readonly Check[] {
  return [
    projectCheck(projects),
    storeCheck(store !== undefined, monitor, now),
    schedulerCheck(projects, monitor, isReady, now),
    reloadCheck(monitor, now),
    ...(store === undefined ? [] : [backlogCheck(store.snapshot.backlog, now)]),
  ];
}

function projectCheck(projects: Overview['projects']): Check {
  const blind = projects.filter(({ state }) => isUnmonitored(state)).length;
  const waiting = projects.filter(({ state }) => state.kind === 'new').length;
  const unknown = projects.filter(({ state }) => state.kind === 'unknown').length;
  const first =
    (waiting === 0 ? '' : `, ${grouped(waiting)} not polled yet`) +
    (unknown === 0 ? '' : `, ${grouped(unknown)} in an unknown state`);
  return {
    name: 'Projects',
    level: blind > 0 ? 'bad' : waiting + unknown > 0 ? 'warn' : 'ok',
    text:
      blind > 0
        ? html`<strong>${grouped(blind)} of ${grouped(projects.length)} not monitored</strong
            >${first}`
        : html`${counted(projects.length, 'project')} watched${first}`,
  };
}

function storeCheck(isReadable: boolean, monitor: MonitorState, now: number): Check {
  const { lastCommitAt, lastCommitFailure: failure } = monitor;
  const words = failure === undefined ? '' : STORE_FAILURE_WORDS[failure.reason];
  const name = 'Store';
  if (!isReadable) {
    return {
      name,
      level: 'bad',
      text: html`<strong>cannot be read</strong>: this page shows only what evalwatch has in memory`,
    };
  }
  if (failure !== undefined && failure.at >= (lastCommitAt ?? 0)) {
    return {
      name,
      level: 'bad',
      text: html`<strong>cannot be written</strong>: ${words}; ${timeWithAge(failure.at, now)}`,
    };
  }
  if (failure !== undefined && now - failure.at < RECENT_MS) {
    return {
      name,
      level: 'warn',
      text: html`works again; a write failed ${timeWithAge(failure.at, now)}: ${words}`,
    };
  }
  const last =
    lastCommitAt === undefined ? 'nothing written yet' : `written ${ago(lastCommitAt, now)}`;
  return { name, level: 'ok', text: html`${last}` };
}

function schedulerCheck(
  projects: Overview['projects'],
  monitor: MonitorState,
  isReady: boolean,
  now: number,
): Check {
  const name = 'Scheduler';
  if (!isReady) return { name, level: 'warn', text: html`is starting or stopping` };
  const late = projects.flatMap(({ state }) => (state.kind === 'late' ? [state.dueAt] : []));
  if (late.length > 0) {
    return {
      name,
      level: 'bad',
      text: html`<strong>late</strong>: ${counted(late.length, 'project')} should have been polled,
        the first ${timeWithAge(Math.min(...late), now)}`,
    };
  }
  const next = projects.flatMap(({ watched }) => watched.nextPollAt ?? []);
  const soon = next.length === 0 ? 'nothing is due' : `next poll ${ago(Math.min(...next), now)}`;
  const { missedRuns, skippedRuns, lastLostRunAt } = monitor;
  if (lastLostRunAt === undefined) return { name, level: 'ok', text: html`on time, ${soon}` };
  return {
    name,
    level:
      missedRuns + skippedRuns > MAX_LOST_RUNS && now - lastLostRunAt < RECENT_MS ? 'warn' : 'ok',
    text: html`${soon}; since the start: ${counted(missedRuns, 'run')} missed,
    ${grouped(skippedRuns)} skipped because the previous one was still running; the last one
    ${timeWithAge(lastLostRunAt, now)}`,
  };
}

function reloadCheck({ lastReload, startedAt }: MonitorState, now: number): Check {
  const name = 'Configuration';
  if (lastReload === undefined) {
    return { name, level: 'ok', text: html`read at the start, ${timeWithAge(startedAt, now)}` };
  }
  if (lastReload.ok) {
    return { name, level: 'ok', text: html`reloaded ${timeWithAge(lastReload.at, now)}` };
  }
  const reasons = lastReload.reasons
    .slice(0, 10)
    .map((reason) => html`<li>${untrustedText(reason, 300, 'one line').shown}</li>`);
  return {
    name,
    level: 'warn',
    text: html`<strong>the last reload failed</strong> ${timeWithAge(lastReload.at, now)}; the
      previous configuration stays in force
      <ul>
        ${reasons}
      </ul>`,
  };
}

function backlogCheck(
  { count, oldestAt }: NonNullable<Overview['store']>['snapshot']['backlog'],
  now: number,
): Check {
  const name = 'Failure reasons';
  if (count === 0 || oldestAt === undefined) return { name, level: 'ok', text: html`all fetched` };
  return {
    name,
    level: now - oldestAt > MAX_BACKLOG_AGE_MS ? 'warn' : 'ok',
    text: html`${counted(count, 'failure')} waiting, the oldest since ${utcTime(oldestAt)},
    ${ago(oldestAt, now)}`,
  };
}

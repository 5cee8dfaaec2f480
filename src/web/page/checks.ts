import { html } from 'hono/html';
import { counted, duration, grouped } from '../../domain/words.ts';
import type { MonitorState } from '../content.ts';
import { isUnmonitored, type PageData } from './model.ts';
import {
  ago,
  STORE_FAILURE_WORDS,
  timeWithAge,
  untrustedText,
  utcTime,
  type Html,
} from './text.ts';

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
/** The same limit as in the alert EvalwatchNotificationFailing. */
const MAX_DUE_MS = 10 * 60 * 1000;

type Verdict = Omit<Check, 'name'>;
type Views = PageData['views'];

/** Checks each part of evalwatch itself. */
export function monitorChecks(
  { store, views }: PageData,
  monitor: MonitorState,
  isScheduling: boolean,
  now: number,
): readonly Check[] {
  const checks: Check[] = [
    { name: 'Projects', ...projectCheck(views) },
    { name: 'Store', ...storeCheck(store !== undefined, monitor, now) },
    { name: 'Scheduler', ...schedulerCheck(views, monitor, isScheduling, now) },
    { name: 'Configuration', ...reloadCheck(monitor, now) },
  ];
  if (store !== undefined) {
    checks.push({ name: 'Failure reasons', ...backlogCheck(store.snapshot.backlog, now) });
  }
  if (monitor.receivers.length > 0) {
    checks.push({ name: 'Receivers', ...receiverCheck(monitor, now) });
  }
  return checks;
}

function projectCheck(views: Views): Verdict {
  const blind = views.filter(isUnmonitored).length;
  const waiting = views.filter(({ state }) => state === 'new').length;
  const unknown = views.filter(({ state }) => state === 'unknown').length;
  const first =
    (waiting === 0 ? '' : `, ${grouped(waiting)} not polled yet`) +
    (unknown === 0 ? '' : `, ${grouped(unknown)} in an unknown state`);
  if (blind === 0) {
    const level = waiting + unknown > 0 ? 'warn' : 'ok';
    return { level, text: html`${counted(views.length, 'project')} watched${first}` };
  }
  return {
    level: 'bad',
    text: html`<strong>${grouped(blind)} of ${grouped(views.length)} not monitored</strong
      >${first}`,
  };
}

function storeCheck(
  isReadable: boolean,
  { lastCommitAt, lastCommitFailure: failure }: MonitorState,
  now: number,
): Verdict {
  if (!isReadable) {
    return {
      level: 'bad',
      text: html`<strong>cannot be read</strong>: this page shows only what evalwatch has in memory`,
    };
  }
  if (failure !== undefined) {
    const words = STORE_FAILURE_WORDS[failure.reason];
    const age = timeWithAge(failure.at, now);
    if (failure.at >= (lastCommitAt ?? 0)) {
      return { level: 'bad', text: html`<strong>cannot be written</strong>: ${words}; ${age}` };
    }
    if (now - failure.at < RECENT_MS) {
      return { level: 'warn', text: html`works again; a write failed ${age}: ${words}` };
    }
  }
  const last =
    lastCommitAt === undefined ? 'nothing written yet' : `written ${ago(lastCommitAt, now)}`;
  return { level: 'ok', text: html`${last}` };
}

function schedulerCheck(
  views: Views,
  { missedRuns, skippedRuns, lastLostRunAt }: MonitorState,
  isScheduling: boolean,
  now: number,
): Verdict {
  if (!isScheduling) return { level: 'warn', text: html`is starting or stopping` };
  const dueOf = (shown: Views) => shown.flatMap(({ watched }) => watched.nextPollAt ?? []);
  const late = dueOf(views.filter(({ state }) => state === 'late'));
  if (late.length > 0) {
    return {
      level: 'bad',
      text: html`<strong>late</strong>: ${counted(late.length, 'project')} should have been polled,
        the first ${timeWithAge(Math.min(...late), now)}`,
    };
  }
  const next = dueOf(views);
  const soon = next.length === 0 ? 'nothing is due' : `next poll ${ago(Math.min(...next), now)}`;
  if (lastLostRunAt === undefined) return { level: 'ok', text: html`on time, ${soon}` };
  const isRecent = now - lastLostRunAt < RECENT_MS;
  return {
    level: missedRuns + skippedRuns > MAX_LOST_RUNS && isRecent ? 'warn' : 'ok',
    text: html`${soon}; since the start: ${counted(missedRuns, 'run')} missed,
    ${grouped(skippedRuns)} skipped because the previous one was still running; the last one
    ${timeWithAge(lastLostRunAt, now)}`,
  };
}

function reloadCheck({ lastReload, startedAt }: MonitorState, now: number): Verdict {
  if (lastReload === undefined) {
    return { level: 'ok', text: html`read at the start, ${timeWithAge(startedAt, now)}` };
  }
  const age = timeWithAge(lastReload.at, now);
  if (lastReload.ok) return { level: 'ok', text: html`reloaded ${age}` };
  const reasons = lastReload.reasons
    .slice(0, 10)
    .map((reason) => html`<li>${untrustedText(reason, 300).shown}</li>`);
  return {
    level: 'warn',
    text: html`<strong>the last reload failed</strong> ${age}; the previous configuration stays in
      force
      <ul>
        ${reasons}
      </ul>`,
  };
}

function backlogCheck(
  { count, oldestAt }: NonNullable<PageData['store']>['snapshot']['backlog'],
  now: number,
): Verdict {
  if (count === 0 || oldestAt === undefined) return { level: 'ok', text: html`all fetched` };
  return {
    level: now - oldestAt > MAX_BACKLOG_AGE_MS ? 'warn' : 'ok',
    text: html`${counted(count, 'failure')} waiting, the oldest since ${utcTime(oldestAt)},
    ${ago(oldestAt, now)}`,
  };
}

function receiverCheck({ receivers }: MonitorState, now: number): Verdict {
  const troubles = receivers.flatMap(({ name, failing, oldestDueAt = now }) => {
    if (failing !== undefined) {
      const { shown } = untrustedText(failing.reason, 300);
      return html`, <strong>${name} has failed</strong> for ${duration(now - failing.since)}:
        ${shown}`;
    }
    const dueMs = now - oldestDueAt;
    // No attempt was made: perhaps the store cannot say what is due.
    return dueMs > MAX_DUE_MS
      ? html`, <strong>what is due for ${name} was not sent</strong> for ${duration(dueMs)}`
      : [];
  });
  return {
    level: troubles.length === 0 ? 'ok' : 'warn',
    text: html`${grouped(receivers.length - troubles.length)} work${troubles}`,
  };
}

import { html } from 'hono/html';
import { counted } from '../../domain/words.ts';
import { facts, section, type Page } from './layout.ts';
import { experimentCounts, experimentState, type ListContext } from './lists.ts';
import type { ExperimentData } from './model.ts';
import {
  failureSections,
  missingPage,
  promptSection,
  staleNote,
  wayBack,
  type StatusQuery,
} from './project.ts';
import { capitalized, plainName, timeWithAge, untrustedName } from './text.ts';

/** The page of one experiment. */
export function experimentPage(
  { store, views: [view] }: ExperimentData,
  { project, experiment, ...query }: StatusQuery & Record<'project' | 'experiment', string>,
  context: ListContext,
): Page {
  const of = `${plainName(experiment)} · ${plainName(project)} · evalwatch`;
  const heading = html`${wayBack(context.root, project)}
    <h1>${untrustedName(experiment)}</h1>`;
  if (store?.row === undefined) {
    const why =
      store &&
      'No prompt of this project is in it. If there were some, they are gone or in another experiment by now.';
    return missingPage('experiment', of, heading, why);
  }
  const { row } = store;
  const time = (ms: number | undefined) => ms !== undefined && timeWithAge(ms, context.now);
  const verdict = capitalized(row.state);
  const failed = counted(row.counts.FAILED, 'prompt');
  return {
    title: `${verdict} · ${of}`,
    summary: `${verdict}. ${failed} failed.`,
    main: html`${heading}
      <p class="lead">${experimentState(row, context.now)}</p>
      ${staleNote(view)}
      ${facts('polls', [
        ['First move', time(row.startedAt) || 'not seen'],
        ['Last move', time(row.movedAt) || 'not seen'],
        ['Ended', time(row.endedAt) || undefined],
        ['Finished', time(row.finishedAt) || undefined],
      ])}
      ${section(
        'counts',
        'Prompts by status',
        experimentCounts(row.counts, (each) => `?status=${each}#prompts`),
      )}
      ${failureSections(store, context)} ${promptSection(store.prompts, query, context)}`,
  };
}

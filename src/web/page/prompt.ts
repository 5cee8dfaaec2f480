import { html } from 'hono/html';
import { duration } from '../../domain/words.ts';
import type { TransitionRow } from '../../monitor/ports/store.ts';
import { facts, section, type Page } from './layout.ts';
import {
  experimentLink,
  serviceLink,
  table,
  waitText,
  type ListContext,
  type Row,
} from './lists.ts';
import { MOVES_SHOWN, waitOf, type PromptData } from './model.ts';
import { badge } from './plot.ts';
import { failureSection, missingPage, moreRows, staleNote, wayBack } from './project.ts';
import { plainName, timeWithAge, untrustedName, type Html } from './text.ts';

/** The page of one prompt: what it is now, and how it came there. */
export function promptPage(
  { store, views: [view] }: PromptData,
  { project, prompt }: { readonly project: string; readonly prompt: string },
  context: ListContext,
): Page {
  const of = `${plainName(prompt)} · ${plainName(project)} · evalwatch`;
  const heading = html`${wayBack(context.root, project)}
    <h1>${untrustedName(prompt)}</h1>`;
  const [lastMove] = store?.moves ?? [];
  if (store === undefined || (store.row === undefined && lastMove === undefined)) {
    const why =
      store &&
      'No prompt of this project has this id. If one had it, it is gone, and so are its transitions.';
    return missingPage('prompt', of, heading, why);
  }
  const { row, moves, failures } = store;
  const { promptName, experiment, dataset, metric, statusRaw } = row ?? {
    promptName: failures[0]?.promptName,
    experiment: lastMove?.experiment,
  };
  const name = (text: string | undefined) => (text ? untrustedName(text) : undefined);
  const verdict = row?.status ?? 'Gone';
  return {
    title: `${verdict} · ${of}`,
    summary: `${verdict}.`,
    main: html`${heading}
    ${row && html`<div class="lead">${badge(row.status)} ${waitText(waitOf(row, view, context.now))}</div>`}
    ${row ? '' : html`<p class="state warn"><strong>Gone</strong>: the service no longer lists it. It was last seen as ${lastMove && badge(lastMove.to)}</p>`}
    ${staleNote(view)}
    ${row?.status === 'FAILED' && lastMove === undefined ? html`<p class="quiet">It had failed before the first poll of its project, or longer ago than store.retention: evalwatch has no error_info of it.</p>` : ''}
    ${facts('polls', [
      ['Name', name(promptName)],
      ['Experiment', experiment && experimentLink(project, experiment, context.root)],
      ['Dataset', name(dataset)],
      ['Metric', name(metric)],
      ['Since', row && timeWithAge(row.since, context.now)],
      ['Status of the service', name(statusRaw)],
      ['Listings without it', row?.missing ? `${row.missing} in a row` : undefined],
      ['Elsewhere', serviceLink({ project, promptId: prompt }, context, 'Open at the service')],
    ])}
    ${failureSection(failures, context)}
    ${section(
      'transitions',
      'Transitions',
      html`${moveTable(moves, context)} ${moreRows('transitions', moves, context, MOVES_SHOWN + 1)}`,
    )}`,
  };
}

/** Moves of one prompt, newest first, each with the time that the prompt was in the status before. */
function moveTable(moves: readonly TransitionRow[], { now }: ListContext): Html {
  const rows = moves.slice(0, MOVES_SHOWN).map(({ from, to, at }, index): Row => {
    const earlier = moves[index + 1];
    const before = earlier
      ? html`after <strong>${duration(Math.max(0, at - earlier.at))}</strong>`
      : html`<span class="quiet">not seen</span>`;
    return [html`${badge(from)} → ${badge(to)}`, before, timeWithAge(at, now)];
  });
  return table('Transitions, newest first', ['Transition', 'Time before', 'Seen'], rows);
}

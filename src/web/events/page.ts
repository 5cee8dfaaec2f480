import { visibleJson } from '../../domain/visible.ts';
import type { EventPosition, RecordedEvents } from '../../monitor/ports/store.ts';
import { failureFields, finishFields, transitionFields } from '../../rows/fields.ts';
import type { ResetFields } from '../../rows/schema.ts';

/** Event types that a client can select; every client gets `reset`. */
export const EVENT_TYPES = ['transition', 'failure', 'experiment', 'poll'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** One event as text that can be sent to any client. */
export interface StreamedEvent {
  readonly type: EventType;
  readonly project: string;
  readonly text: string;
}

/** A recorded event with the position after it. */
interface PlacedEvent extends StreamedEvent {
  readonly position: EventPosition;
}

/** Consecutive recorded events, as many as a client is sent at once. */
export interface EventPage {
  readonly events: readonly PlacedEvent[];
  /** Why events after the position are missing; undefined if none are. */
  readonly gap: ResetFields['reason'] | undefined;
  /** Position after the page. */
  readonly next: EventPosition;
  /** Whether more events follow. */
  readonly more: boolean;
}

/** Maximum length of a page. A client that does not read holds at most this and one event in memory. */
const MAX_CHARACTERS = 32 * 1024;

/** Returns the id from which a client resumes: `t17.f4.x2` is after transition 17, the 4th settled failure and the 2nd finish. */
export function writeId({ transition, settlement, finish }: EventPosition): string {
  return `t${transition}.f${settlement}.x${finish}`;
}

/** Ids of version 0.2.0, which knew no finishes, end before the last point. */
export const EVENT_ID = /^t(\d{1,15})\.f(\d{1,15})(?:\.x(\d{1,15}))?$/;

/** Parses what {@link writeId} returned; undefined if the text is not an id. */
export function readId(text: string): EventPosition | undefined {
  const [, transition, settlement, finish = 0] = EVENT_ID.exec(text) ?? [];
  if (transition === undefined) return undefined;
  return {
    transition: Number(transition),
    settlement: Number(settlement),
    finish: Number(finish),
  };
}

/** Returns the text of an event. Without a position it has no id, so the client keeps the last one. */
export function eventText(
  type: EventType | 'reset',
  fields: object,
  position?: EventPosition,
): string {
  const id = position === undefined ? '' : `id: ${writeId(position)}\n`;
  return `event: ${type}\n${id}data: ${visibleJson(JSON.stringify(fields))}\n\n`;
}

/**
 * Returns the events after a position, from the rows of the store: transitions first, each failure after its transition, and
 * finishes after all transitions. Numbers have no gaps, so a missing number was deleted, and a number beyond the end is from another store.
 */
export function toPage(
  after: EventPosition,
  { transitions, settled, finishes, end }: RecordedEvents,
  limit: number,
): EventPage {
  if (
    after.transition > end.transition ||
    after.settlement > end.settlement ||
    after.finish > end.finish
  ) {
    return { events: [], gap: 'unknown_id', next: end, more: false };
  }
  const allTransitions = transitions.length < limit;
  const transition = allTransitions
    ? end.transition
    : (transitions.at(-1)?.transitionId ?? after.transition);
  const tooEarly = settled.findIndex(({ transitionId }) => transitionId > transition);
  const failures = tooEarly === -1 ? settled : settled.slice(0, tooEarly);
  const allFailures = tooEarly === -1 && settled.length < limit;
  const settlement = allFailures
    ? end.settlement
    : (failures.at(-1)?.settlementId ?? after.settlement);
  // A finish follows the moves that led to it.
  const shown = allTransitions ? finishes : [];
  const allFinishes = allTransitions && finishes.length < limit;
  const finish = allFinishes ? end.finish : (shown.at(-1)?.finishId ?? after.finish);
  const gap =
    transitions.length === transition - after.transition &&
    failures.length === settlement - after.settlement &&
    shown.length === finish - after.finish
      ? undefined
      : 'retention';
  const events: PlacedEvent[] = [];
  let characters = 0;
  for (const event of placed(after, transitions, { transition, settlement }, failures, shown)) {
    characters += event.text.length;
    const last = events.at(-1);
    if (last !== undefined && characters > MAX_CHARACTERS) {
      return { events, gap, next: last.position, more: true };
    }
    events.push(event);
  }
  const more = !allTransitions || !allFailures || !allFinishes;
  return { events, gap, next: { transition, settlement, finish }, more };
}

/** Yields all transitions, then the failures, then the finishes. `last` are the last numbers of the first two. */
function* placed(
  { settlement, finish }: EventPosition,
  transitions: RecordedEvents['transitions'],
  last: Omit<EventPosition, 'finish'>,
  failures: RecordedEvents['settled'],
  finishes: RecordedEvents['finishes'],
): Generator<PlacedEvent, void> {
  for (const row of transitions) {
    const position = { transition: row.transitionId, settlement, finish };
    const text = eventText('transition', transitionFields(row), position);
    yield { type: 'transition', project: row.project, text, position };
  }
  for (const row of failures) {
    const position = { transition: last.transition, settlement: row.settlementId, finish };
    const text = eventText('failure', failureFields(row), position);
    yield { type: 'failure', project: row.project, text, position };
  }
  for (const row of finishes) {
    const position = { ...last, finish: row.finishId };
    const text = eventText('experiment', finishFields(row), position);
    yield { type: 'experiment', project: row.project, text, position };
  }
}

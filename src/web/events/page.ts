import { visibleJson } from '../../domain/visible.ts';
import type { EventPosition, RecordedEvents } from '../../monitor/ports/store.ts';
import { failureFields, transitionFields } from '../../rows/fields.ts';
import type { ResetFields } from '../../rows/schema.ts';

/** Event types that a client can select; every client gets `reset`. */
export const EVENT_TYPES = ['transition', 'failure', 'poll'] as const;
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

/** Returns the id from which a client resumes: `t17.f4` is after transition 17 and after the 4th settled failure. */
export function writeId({ transition, settlement }: EventPosition): string {
  return `t${transition}.f${settlement}`;
}

export const EVENT_ID = /^t(\d{1,15})\.f(\d{1,15})$/;

/** Parses what {@link writeId} returned; undefined if the text is not an id. */
export function readId(text: string): EventPosition | undefined {
  const [, transition, settlement] = EVENT_ID.exec(text) ?? [];
  if (transition === undefined) return undefined;
  return { transition: Number(transition), settlement: Number(settlement) };
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
 * Returns the events after a position, from the rows of the store: transitions first, and each failure after its
 * transition. Numbers have no gaps, so a missing number was deleted, and a number beyond the end is from another store.
 */
export function toPage(
  after: EventPosition,
  { transitions, settled, end }: RecordedEvents,
  limit: number,
): EventPage {
  if (after.transition > end.transition || after.settlement > end.settlement) {
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
  const gap =
    transitions.length === transition - after.transition &&
    failures.length === settlement - after.settlement
      ? undefined
      : 'retention';
  const events: PlacedEvent[] = [];
  let characters = 0;
  for (const event of placed(after, transitions, transition, failures)) {
    characters += event.text.length;
    const last = events.at(-1);
    if (last !== undefined && characters > MAX_CHARACTERS) {
      return { events, gap, next: last.position, more: true };
    }
    events.push(event);
  }
  return { events, gap, next: { transition, settlement }, more: !allTransitions || !allFailures };
}

/** Yields all transitions, then the failures, whose positions follow `transition`. */
function* placed(
  { settlement }: EventPosition,
  transitions: RecordedEvents['transitions'],
  transition: number,
  failures: RecordedEvents['settled'],
): Generator<PlacedEvent, void> {
  for (const row of transitions) {
    const position = { transition: row.transitionId, settlement };
    const text = eventText('transition', transitionFields(row), position);
    yield { type: 'transition', project: row.project, text, position };
  }
  for (const row of failures) {
    const position = { transition, settlement: row.settlementId };
    const text = eventText('failure', failureFields(row), position);
    yield { type: 'failure', project: row.project, text, position };
  }
}

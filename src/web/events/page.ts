import type { EventPosition, RecordedEvents } from '../../monitor/ports/store.ts';
import { failureFields, transitionFields } from '../../rows/fields.ts';
import type { ResetFields } from '../../rows/schema.ts';
import { eventText, type StreamedEvent } from './event.ts';

/** An event with the position after it. */
interface PlacedEvent extends StreamedEvent {
  readonly position: EventPosition;
}

/** Maximum length of a page. A client that does not read holds at most this and one event in memory. */
const MAX_CHARACTERS = 32 * 1024;

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
  const { events, isWhole } = takeEvents(placed(after, transitions, transition, failures));
  const last = events.at(-1);
  if (!isWhole && last !== undefined) return { events, gap, next: last.position, more: true };
  return { events, gap, next: { transition, settlement }, more: !allTransitions || !allFailures };
}

/** Returns an empty page, for a client that has all events. */
export function nothingAfter(position: EventPosition): EventPage {
  return { events: [], gap: undefined, next: position, more: false };
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

/** Takes the events that fit into a page, but at least one. */
function takeEvents(events: Iterable<PlacedEvent>): {
  readonly events: readonly PlacedEvent[];
  readonly isWhole: boolean;
} {
  const taken: PlacedEvent[] = [];
  let characters = 0;
  for (const event of events) {
    characters += event.text.length;
    if (taken.length > 0 && characters > MAX_CHARACTERS) return { events: taken, isWhole: false };
    taken.push(event);
  }
  return { events: taken, isWhole: true };
}

import type { EventPosition, RecordedEvents } from '../../monitor/ports/store.ts';
import { failureFields, transitionFields } from '../../rows/fields.ts';
import type { ResetFields } from '../../rows/schema.ts';
import { eventText, type StreamedEvent } from './event.ts';

/** An event with its place. */
interface PlacedEvent extends StreamedEvent {
  readonly position: EventPosition;
}

/** Longest text of a page. A client that does not read can hold this much and one event in memory. */
const MAX_CHARACTERS = 32 * 1024;

/** A stretch of the recorded events, no longer than a client is sent at once. */
export interface EventPage {
  readonly events: readonly PlacedEvent[];
  /** Why not all that came after the position is there. */
  readonly gap: ResetFields['reason'] | undefined;
  /** After all of it. */
  readonly next: EventPosition;
  /** There are more already. */
  readonly more: boolean;
}

/**
 * The events after a position, from what the store has of them: transitions first, and each failure after its transition.
 * Numbers come without holes, so a missing one was deleted, and one beyond the end is of another store.
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

/** The page of a client that has all events. */
export function nothingAfter(position: EventPosition): EventPage {
  return { events: [], gap: undefined, next: position, more: false };
}

/** All transitions, and then the failures, which come after the transition with this number. */
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

/** Takes the events that fit into a page, at least one. */
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

import type { EventPosition, RecordedEvents } from '../../monitor/ports.ts';
import { failureFields, transitionFields } from '../../monitor/row-fields.ts';
import { eventText, type StreamedEvent } from './event.ts';

/** An event with its place. */
interface PlacedEvent extends StreamedEvent {
  readonly position: EventPosition;
}

/** A stretch of the recorded events. */
export interface EventPage {
  readonly events: readonly PlacedEvent[];
  /** Why not all that came after the position is there. */
  readonly gap: 'retention' | 'unknown_id' | undefined;
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
  const isWhole =
    transitions.length === transition - after.transition &&
    failures.length === settlement - after.settlement;
  return {
    events: [
      ...transitions.map((row) =>
        place('transition', row.project, transitionFields(row), {
          transition: row.transitionId,
          settlement: after.settlement,
        }),
      ),
      ...failures.map((row) =>
        place('failure', row.project, failureFields(row), {
          transition,
          settlement: row.settlementId,
        }),
      ),
    ],
    gap: isWhole ? undefined : 'retention',
    next: { transition, settlement },
    more: !allTransitions || !allFailures,
  };
}

function place(
  type: 'transition' | 'failure',
  project: string,
  fields: object,
  position: EventPosition,
): PlacedEvent {
  return { type, project, text: eventText(type, fields, position), position };
}

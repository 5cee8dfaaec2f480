import { visibleJson } from '../../domain/visible.ts';
import type { EventPosition } from '../../monitor/ports/store.ts';
import type {
  FailureFields,
  PollFields,
  ResetFields,
  TransitionFields,
} from '../../rows/schema.ts';

/** Event types that a client can select; every client gets `reset`. */
export const EVENT_TYPES = ['transition', 'failure', 'poll'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** One event as text that can be sent to any client. */
export interface StreamedEvent {
  readonly type: EventType;
  readonly project: string;
  readonly text: string;
}

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

interface EventFields extends Readonly<Record<EventType | 'reset', object>> {
  readonly transition: TransitionFields;
  readonly failure: FailureFields;
  readonly poll: PollFields;
  readonly reset: ResetFields;
}

/** Returns the text of an event. Without a position it has no id, so the client keeps the last one. */
export function eventText<Type extends keyof EventFields>(
  type: Type,
  fields: EventFields[Type],
  position?: EventPosition,
): string {
  const id = position === undefined ? '' : `id: ${writeId(position)}\n`;
  return `event: ${type}\n${id}data: ${visibleJson(JSON.stringify(fields))}\n\n`;
}

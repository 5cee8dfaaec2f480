import { visibleJson } from '../../domain/visible.ts';
import type { EventPosition } from '../../monitor/ports/store.ts';
import type {
  FailureFields,
  PollFields,
  ResetFields,
  TransitionFields,
} from '../../rows/schema.ts';

/** What a stream can be asked for; `reset` comes whatever was asked for. */
export const EVENT_TYPES = ['transition', 'failure', 'poll'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** One event as text, ready to be sent to whoever wants it. */
export interface StreamedEvent {
  readonly type: EventType;
  readonly project: string;
  readonly text: string;
}

/** The id by which a client resumes, such as `t17.f4`: after transition 17 and after the 4th failure that was settled. */
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

/** The text of an event; without a position, the client keeps the id of the event before it. */
export function eventText<Type extends keyof EventFields>(
  type: Type,
  fields: EventFields[Type],
  position?: EventPosition,
): string {
  const id = position === undefined ? '' : `id: ${writeId(position)}\n`;
  return `event: ${type}\n${id}data: ${visibleJson(JSON.stringify(fields))}\n\n`;
}

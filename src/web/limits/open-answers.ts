import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../monitor/ports/clock.ts';
import { clientOf } from './client.ts';
import { createItemsByClient } from './items-by-client.ts';

/** A client that has been sent an answer and is still reading it after this time has to go if its place is needed, ms. */
const PATIENCE_MS = 2000;

export interface OpenAnswerLimit {
  /** Answers that may be open at the same time. */
  readonly max: number;
  /** Answers that end, so that one that is open for long is read slowly; an event stream is not. */
  readonly areFinite: boolean;
  readonly clock: Pick<Clock, 'monotonic'>;
}

interface Place {
  readonly client: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Start of the answer by the monotonic clock, ms. */
  readonly since: number;
}

/**
 * Gives out places for answers. Where all are taken, the client that has the most loses its oldest to one that has fewer,
 * and a client that reads slowly loses its place to anybody.
 */
export function limitOpenAnswers({
  max,
  areFinite,
  clock,
}: OpenAnswerLimit): (request: IncomingMessage, response: ServerResponse) => boolean {
  const places = createItemsByClient<Place>();

  function toGiveUp(client: string): Place | undefined {
    const most = places.largest();
    // One more than fewer: two clients never take a place from each other in turn.
    if (most.size > places.of(client).size + 1) return most.values().next().value;
    if (!areFinite) return undefined;
    const latest = clock.monotonic() - PATIENCE_MS;
    return places.all().find(({ response, since }) => response.headersSent && since < latest);
  }

  return (request, response) => {
    const client = clientOf(request.socket.remoteAddress);
    if (places.size >= max) {
      const given = toGiveUp(client);
      if (given === undefined) return false;
      places.delete(given.client, given);
      // The connection: an answer may wait behind others that go on.
      given.request.socket.destroy();
    }
    const place: Place = { client, request, response, since: clock.monotonic() };
    places.add(client, place);
    response.once('close', () => places.delete(client, place));
    return true;
  };
}

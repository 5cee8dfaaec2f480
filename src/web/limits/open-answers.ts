import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../monitor/ports/clock.ts';
import { clientOf } from './client.ts';
import { createItemsByClient } from './items-by-client.ts';

/** Time that a client has to read an answer before the answer may be closed for another one, ms. */
const SLOW_READER_MS = 2000;

export interface OpenAnswerLimit {
  /** Maximum number of open answers. */
  readonly max: number;
  /** Whether these answers end by themselves, so that one that is open for long has a slow reader. False for event streams. */
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
 * Limits the number of open answers. The returned function admits an answer, or returns false. If all places are taken, the
 * client with the most open answers loses its oldest one to a client with fewer, and a slow reader loses its answer to any
 * client.
 */
export function limitOpenAnswers({
  max,
  areFinite,
  clock,
}: OpenAnswerLimit): (request: IncomingMessage, response: ServerResponse) => boolean {
  const places = createItemsByClient<Place>();

  function findPlaceToFree(client: string): Place | undefined {
    const most = places.largest();
    // A difference of two or more, so that two clients do not take a place from each other in turn.
    if (most.size > places.of(client).size + 1) return most.values().next().value;
    if (!areFinite) return undefined;
    const latest = clock.monotonic() - SLOW_READER_MS;
    return places.all().find(({ response, since }) => response.headersSent && since < latest);
  }

  return (request, response) => {
    const client = clientOf(request.socket.remoteAddress);
    if (places.size >= max) {
      const freed = findPlaceToFree(client);
      if (freed === undefined) return false;
      places.delete(freed.client, freed);
      // Closes the connection, because the answer may wait behind earlier answers that continue.
      freed.request.socket.destroy();
    }
    const place: Place = { client, request, response, since: clock.monotonic() };
    places.add(client, place);
    response.once('close', () => places.delete(client, place));
    return true;
  };
}

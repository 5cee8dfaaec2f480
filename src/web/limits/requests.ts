import type { Clock } from '../../monitor/ports/clock.ts';
import { limitOpenAnswers } from './open-answers.ts';
import { type Handler, refuse } from '../handler.ts';
import { PATHS } from '../paths.ts';
import type { Route } from '../request/target.ts';

/** Maximum number of requests that are answered at the same time, for each class of path. */
const MAX_REQUESTS: Readonly<Record<Exclude<Route, 'probe'>, number>> = {
  metrics: 16,
  events: 500,
  other: 32,
};
/** Time that a client has to read its answer before its connection is closed, ms: open answers hold memory. */
const ANSWER_TIMEOUT_MS = 15_000;

/** Limits the requests of each class at the same time; further ones get a 503. Probes are not limited. */
export function limitRequests(handle: Handler, clock: Pick<Clock, 'monotonic'>): Handler {
  const take = {
    metrics: limitOpenAnswers({ max: MAX_REQUESTS.metrics, areFinite: true, clock }),
    events: limitOpenAnswers({ max: MAX_REQUESTS.events, areFinite: false, clock }),
    other: limitOpenAnswers({ max: MAX_REQUESTS.other, areFinite: true, clock }),
  };

  return (request, response, target) => {
    const { route } = target;
    if (route === 'probe') return handle(request, response, target);
    if (!take[route](request, response)) {
      response.setHeader('retry-after', '1');
      return refuse(response, 503, 'too many requests at the same time');
    }
    if (target.path === PATHS.reload) {
      // A reload takes as long as its database; it goes on without its client.
      request.socket.setTimeout(0);
    } else if (route !== 'events') {
      // Closes the connection, because the answer may wait behind earlier answers that continue.
      const deadline = setTimeout(() => request.socket.destroy(), ANSWER_TIMEOUT_MS);
      response.once('close', () => clearTimeout(deadline));
    }
    return handle(request, response, target);
  };
}

import type { Clock } from '../../monitor/ports/clock.ts';
import { limitOpenAnswers } from './open-answers.ts';
import { type Handler, refuse } from '../handler.ts';
import type { Route } from '../request/target.ts';

/** Requests that may be answered at the same time, by what they ask for: none takes the place of another. */
const SLOTS: Readonly<Record<Exclude<Route, 'probe'>, number>> = {
  metrics: 16,
  events: 500,
  other: 32,
};
/** A client that has not read its answer by then is cut off: answers in flight hold memory. */
const ANSWER_TIMEOUT_MS = 15_000;

/** Counts a request until its answer is read or its client gone; more of its kind get a 503, probes never. */
export function limitRequests(handle: Handler, clock: Pick<Clock, 'monotonic'>): Handler {
  const take = {
    metrics: limitOpenAnswers({ max: SLOTS.metrics, areFinite: true, clock }),
    events: limitOpenAnswers({ max: SLOTS.events, areFinite: false, clock }),
    other: limitOpenAnswers({ max: SLOTS.other, areFinite: true, clock }),
  };

  return (request, response, target) => {
    const { route } = target;
    if (route === 'probe') return handle(request, response, target);
    if (!take[route](request, response)) {
      response.setHeader('retry-after', '1');
      return refuse(response, 503, 'too many requests at the same time');
    }
    if (route !== 'events') {
      // The connection, as an answer may wait behind others that go on.
      const deadline = setTimeout(() => request.socket.destroy(), ANSWER_TIMEOUT_MS);
      response.once('close', () => clearTimeout(deadline));
    }
    return handle(request, response, target);
  };
}

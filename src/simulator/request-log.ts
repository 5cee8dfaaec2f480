import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Endpoint } from './faults/fault-plan.ts';

/** A request that arrived at the simulated service. */
interface SeenRequest {
  /** Epoch ms. */
  readonly at: number;
  readonly method: string;
  /** As it was sent, percent-encoding and query included. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly endpoint: Endpoint | 'other';
  /** Of the prompt too; undefined if the request names nothing that exists. */
  readonly project: string | undefined;
  /** Undefined until the answer begins, for ever if it does not. */
  readonly status: number | undefined;
}

/** What to count; what is left out does not matter. */
interface RequestFilter {
  readonly endpoint?: Endpoint | 'other';
  readonly project?: string;
  readonly status?: number;
}

/** The requests of a running simulation. */
export interface RequestLog {
  /** The last 10,000 or more, oldest first. */
  readonly recent: readonly SeenRequest[];
  readonly last: SeenRequest | undefined;
  /** How many of the recent ones fit. */
  count(filter?: RequestFilter): number;
  /** Requests that have no complete answer yet, now and at most so far. */
  readonly inFlight: number;
  readonly maxInFlight: number;
  add(
    message: IncomingMessage,
    response: ServerResponse,
    about: Pick<SeenRequest, 'at' | 'endpoint' | 'project'>,
  ): void;
}

const MAX_KEPT = 10_000;

export function createRequestLog(): RequestLog {
  let recent: SeenRequest[] = [];
  let inFlight = 0;
  let maxInFlight = 0;
  return {
    get recent() {
      return recent;
    },
    get last() {
      return recent.at(-1);
    },
    get inFlight() {
      return inFlight;
    },
    get maxInFlight() {
      return maxInFlight;
    },
    count({ endpoint, project, status } = {}) {
      return recent.filter(
        (request) =>
          (endpoint ?? request.endpoint) === request.endpoint &&
          (project ?? request.project) === request.project &&
          (status ?? request.status) === request.status,
      ).length;
    },
    add({ method = '', url = '', headers }, response, about) {
      inFlight += 1;
      maxInFlight = Math.max(maxInFlight, inFlight);
      response.once('close', () => {
        inFlight -= 1;
      });
      recent.push({
        ...about,
        method,
        url,
        headers,
        get status() {
          return response.headersSent ? response.statusCode : undefined;
        },
      });
      if (recent.length > 2 * MAX_KEPT) recent = recent.slice(-MAX_KEPT);
    },
  };
}

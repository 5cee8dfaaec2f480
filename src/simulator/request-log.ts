import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Endpoint } from './faults/fault-plan.ts';

/** A request that arrived at the simulated service. */
interface SeenRequest {
  /** Epoch ms. */
  readonly at: number;
  readonly method: string;
  /** The request target as it was sent, with percent-encoding and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly endpoint: Endpoint | 'other';
  /** Project of the listing or the prompt; undefined if the request names nothing that exists. */
  readonly project: string | undefined;
  /** Undefined until the answer begins. */
  readonly status: number | undefined;
}

/** Which requests to count. An absent field matches every request. */
interface RequestFilter {
  readonly endpoint?: Endpoint | 'other';
  readonly project?: string;
  readonly status?: number;
}

/** The requests of a running simulation. */
export interface RequestLog {
  /** At least the last 10,000 requests, oldest first. */
  readonly recent: readonly SeenRequest[];
  readonly last: SeenRequest | undefined;
  /** Counts the recent requests that match. */
  count(filter?: RequestFilter): number;
  /** Number of requests without a complete answer. */
  readonly inFlight: number;
  /** Highest value of `inFlight` so far. */
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

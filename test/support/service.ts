import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as it arrived at a {@link Service}. */
export interface Arrival {
  /** Monotonic ms. */
  readonly at: number;
  /** As it was sent. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Of a listing; undefined for a single prompt. */
  readonly project: string | undefined;
}

export type Handler = (arrival: Arrival, response: ServerResponse) => void | Promise<void>;

/** An Evaluation Service as evil or as simple as its handler; `await using` closes it. */
export interface Service extends AsyncDisposable {
  readonly url: string;
  readonly arrivals: readonly Arrival[];
  /** Of this project's listings. */
  of(project: string): readonly Arrival[];
  /** Requests without an answer at the same time, at most. */
  readonly maxInFlight: number;
}

export async function startService(handler: Handler): Promise<Service> {
  const arrivals: Arrival[] = [];
  let inFlight = 0;
  let maxInFlight = 0;
  const server = createServer((request, response) => {
    const { url: path = '', headers } = request;
    const [, segment] = /^\/v2\/projects\/([^/]+)\//.exec(path) ?? [];
    const project = segment && decodeURIComponent(segment);
    const arrival = { at: performance.now(), path, headers, project };
    arrivals.push(arrival);
    inFlight += 1;
    maxInFlight = Math.max(maxInFlight, inFlight);
    response.once('close', () => {
      inFlight -= 1;
    });
    // A client that gave up breaks the connection of whoever answers late.
    response.on('error', () => {});
    void Promise.resolve(handler(arrival, response)).catch(() => response.destroy());
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    arrivals,
    of: (project) => arrivals.filter((arrival) => arrival.project === project),
    get maxInFlight() {
      return maxInFlight;
    },
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

/** A listing's item with all that the service documents. */
export function promptItem(id: string, status: string): object {
  return {
    id,
    name: `name of ${id}`,
    timestamp: '2026-01-01T00:00:00Z',
    dataset: 'dataset-1',
    task_description: 'a task',
    metric: 'accuracy',
    status,
  };
}

/** A single prompt with all that the service documents. */
export function promptDetail(errorInfo?: object | null): object {
  return {
    name: 'a prompt',
    timestamp: '2026-01-01T00:00:00Z',
    llm: 'a model',
    dataset: 'dataset-1',
    task_description: 'a task',
    metric: 'accuracy',
    status: 'FAILED',
    error_info: errorInfo,
  };
}

/** A service of one project `alpha` whose prompts and error_infos a test sets as it likes. */
export async function startAlpha() {
  const statuses: Record<string, string> = {};
  const details: Record<string, Handler> = {};
  const service = await startService(async (arrival, response) => {
    const [, segment] = /^\/v2\/prompts\/([^/]+)\/$/.exec(arrival.path) ?? [];
    if (segment === undefined) {
      const items = Object.entries(statuses).map(([id, status]) => promptItem(id, status));
      sendJson(response, items);
      return;
    }
    const id = decodeURIComponent(segment);
    const detail = details[id];
    if (detail === undefined) sendJson(response, promptDetail(errorOf(id)));
    else await detail(arrival, response);
  });
  return {
    url: service.url,
    arrivals: service.arrivals,
    /** Moves these prompts; those not named stay. */
    set: (change: Readonly<Record<string, string>>) => Object.assign(statuses, change),
    /** How a single prompt is answered from now on; by default with {@link errorOf}. */
    answer: (id: string, handler: Handler) => {
      details[id] = handler;
    },
    details: () => service.arrivals.filter(({ path }) => path.startsWith('/v2/prompts/')),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

export function errorOf(id: string) {
  return { error_id: `error-of-${id}`, error_msg: `what went wrong with ${id}` };
}

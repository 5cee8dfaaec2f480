import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerTo, type Keys, send } from '../../src/simulator/service.ts';
import type { World } from '../../src/simulator/world.ts';

/** A request as it arrived at a {@link Service}. */
interface Arrival {
  /** Monotonic time, ms. */
  readonly at: number;
  /** Path and query. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Port of the client, which tells connections apart. */
  readonly port: number | undefined;
  /** Project of a listing; undefined for a single prompt. */
  readonly project: string | undefined;
}

export type Handler = (arrival: Arrival, response: ServerResponse) => void | Promise<void>;

/** A fake Evaluation Service that a handler controls; `await using` closes it. */
export interface Service extends AsyncDisposable {
  readonly url: string;
  readonly arrivals: readonly Arrival[];
  /** Requests for its listings. */
  of(project: string): readonly Arrival[];
  /** Highest number of requests in flight so far. */
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
    const port = request.socket.remotePort;
    const arrival = { at: performance.now(), path, headers, port, project };
    arrivals.push(arrival);
    inFlight += 1;
    maxInFlight = Math.max(maxInFlight, inFlight);
    response.once('close', () => {
      inFlight -= 1;
    });
    // A late answer to a client that gave up fails with an error.
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

/** Starts a service of these projects, like the simulated one. */
export function startWorld(world: World, keys: Keys): Promise<Service> {
  return startService((_, response) => send(response, answerTo(response.req, world, keys)));
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

/** Returns an item of a listing with every field that the service documents. */
export function promptItem(id: string, status: string, experiment?: string): object {
  return {
    id,
    name: `name of ${id}`,
    timestamp: '2026-01-01T00:00:00Z',
    dataset: 'dataset-1',
    task_description: 'a task',
    metric: 'accuracy',
    experiment,
    status,
  };
}

/** Returns a single prompt with every field that the service documents. */
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

/** Starts a service of one project `alpha` whose prompts and error_infos a test sets. */
export async function startAlpha() {
  const statuses: Record<string, string> = {};
  const experiments: Record<string, string> = {};
  const details: Record<string, Handler> = {};
  const service = await startService(async (arrival, response) => {
    const [, segment] = /^\/v2\/prompts\/([^/]+)\/$/.exec(arrival.path) ?? [];
    if (segment === undefined) {
      const items = Object.entries(statuses).map(([id, status]) =>
        promptItem(id, status, experiments[id]),
      );
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
    /** Sets the statuses of these prompts, and their experiment if it is given; others stay. */
    set: (change: Readonly<Record<string, string>>, experiment?: string) => {
      Object.assign(statuses, change);
      if (experiment === undefined) return;
      for (const id of Object.keys(change)) experiments[id] = experiment;
    },
    /** Sets the handler for a single prompt; the default answers with {@link errorOf}. */
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

import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { SecretSource } from '../../../src/domain/options.ts';
import { HttpEvaluationService } from '../../../src/client/client.ts';
import { createApiKeyReader } from '../../../src/client/api-key.ts';
import { ApiError } from '../../../src/monitor/errors.ts';
import type { MonitorEvent } from '../../../src/monitor/events.ts';
import type { Clock } from '../../../src/monitor/ports/clock.ts';
import type { ListOptions, ServiceSettings } from '../../../src/monitor/ports/service.ts';

export const KEY = 'key-of-the-tests/1+2=3';

export interface TestServer {
  readonly url: string;
  readonly server: Server;
  /** In order of arrival. */
  readonly requests: readonly IncomingMessage[];
  readonly sockets: ReadonlySet<Socket>;
}

/** Starts a server on the loopback for one test. */
export async function serve(listener: RequestListener): Promise<TestServer> {
  const requests: IncomingMessage[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    requests.push(request);
    response.on('error', () => {});
    listener(request, response);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, server, requests, sockets };
}

/** Answers every request with the same response. */
export function answering(
  status: number,
  body: string | Buffer = '',
  headers: Record<string, string | string[]> = {},
): RequestListener {
  return (_, response) => {
    response.writeHead(status, headers);
    response.end(body);
  };
}

/** Answers each request with the next listener, and all further ones with the last listener. */
export function inTurn(...listeners: readonly RequestListener[]): RequestListener {
  let turn = 0;
  return (request, response) => {
    listeners[Math.min(turn, listeners.length - 1)]?.(request, response);
    turn += 1;
  };
}

/** Answers with raw bytes, which need not be HTTP, and closes the connection. */
export function raw(bytes: string | Buffer): RequestListener {
  return (_: IncomingMessage, response: ServerResponse) => {
    response.socket?.end(bytes);
  };
}

export interface TestClient {
  readonly service: HttpEvaluationService;
  readonly events: readonly MonitorEvent[];
}

export interface TestClientOptions extends Partial<ServiceSettings> {
  readonly baseUrl: string;
  /** The key of every project, or the keys by project. */
  readonly key?: SecretSource | ((project: string) => SecretSource) | undefined;
  readonly clock?: Clock;
}

/** Creates a client for one test, with the shortest waits between attempts. */
export function connect({
  key = { env: 'TEST_KEY', value: KEY },
  clock = systemClock,
  ...service
}: TestClientOptions): TestClient {
  const events: MonitorEvent[] = [];
  const client = new HttpEvaluationService({
    service: {
      timeoutMs: 10_000,
      retries: 0,
      maxConcurrency: 8,
      maxRequestsPerSecond: 0,
      maxResponseBytes: 1024 * 1024,
      maxItems: 100_000,
      authorities: undefined,
      proxyUrl: undefined,
      ...service,
    },
    keyOf: (project) => (typeof key === 'function' ? key(project) : key),
    readKey: createApiKeyReader(clock),
    clock,
    emit: (event) => events.push(event),
    version: '1.2.3',
    random: () => 0,
  });
  onTestFinished(async () => await client.close());
  return { service: client, events };
}

/** Signals that never abort. */
export const RUNNING = {
  waits: new AbortController().signal,
  requests: new AbortController().signal,
};

export function listOptions(options: Partial<ListOptions> = {}): ListOptions {
  return {
    previous: undefined,
    etag: undefined,
    allowDifference: true,
    isFailing: false,
    onRequest: () => {},
    signal: RUNNING,
    ...options,
  };
}

/** Returns the `ApiError` of a call; any other outcome fails the test. */
export async function failureOf(call: Promise<unknown>): Promise<ApiError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('the call succeeded');
}

export function ofType<T extends MonitorEvent['type']>(
  events: readonly MonitorEvent[],
  type: T,
): readonly Extract<MonitorEvent, { type: T }>[] {
  return events.filter((event): event is Extract<MonitorEvent, { type: T }> => event.type === type);
}

import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import type { World } from './world.ts';

/** The default key of a simulation. */
export const DEFAULT_KEY = 'simulated-service-key';

/** The keys that a service accepts, each with the only project that it may read; undefined for all projects. */
export type Keys = ReadonlyMap<string, string | undefined>;

/** As much of a request as its answer depends on. */
export interface Request {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Longer than any client keeps an idle connection, so that no request is sent on a connection that is closing. */
const KEEP_ALIVE_MS = 75_000;
const NO_BODY: Buffer = Buffer.alloc(0);
const JSON_TYPE = { 'content-type': 'application/json' };
const LISTING = /^\/v2\/projects\/([^/]+)\/(prompt|dataset)s\/$/;
const PROMPT = /^\/v2\/prompts\/([^/]+)\/$/;

/**
 * Returns the answer to a request, as the documentation of the Evaluation Service describes it. What it does not describe is
 * answered as FastAPI does: 401 to a missing or wrong key, 403 to the key of another project, 404, 405, and 307 to a path
 * with a slash at its end. An unchanged listing is 304.
 */
export function answerTo({ method, url = '', headers }: Request, world: World, keys: Keys): Answer {
  const [path = '', query] = url.split('?', 2);
  const [, projectText, kind] = LISTING.exec(path) ?? [];
  const [, promptText] = PROMPT.exec(path) ?? [];
  if (projectText === undefined && promptText === undefined) {
    if (!LISTING.test(`${path}/`) && !PROMPT.test(`${path}/`)) return errorAnswer(404);
    const target = `${path}/${query === undefined ? '' : `?${query}`}`;
    return answer(307, { location: `http://${headers.host ?? ''}${target}` });
  }
  if (method !== 'GET') return errorAnswer(405, undefined, { allow: 'GET' });

  const key = headers['x-api-key'] ?? '';
  if (key === '') return errorAnswer(401, 'API key is missing');
  if (typeof key !== 'string' || !keys.has(key)) return errorAnswer(401, 'API key is not valid');

  const id = decode(projectText ?? promptText ?? '');
  const project = promptText === undefined ? id : world.projectOf(id);
  const prompts = world.prompts(project ?? '');
  if (project === undefined || prompts === undefined) return errorAnswer(404);
  if ((keys.get(key) ?? project) !== project) {
    return errorAnswer(403, 'API key is not valid for this project');
  }
  if (promptText !== undefined) {
    const { id: _, ...detail } = prompts.get(id) ?? {};
    return answer(200, JSON_TYPE, Buffer.from(JSON.stringify(detail)));
  }
  const listing = world.listing(project, kind === 'dataset' ? 'dataset' : 'prompt');
  if (listing === undefined) return errorAnswer(404);
  const { body, etag } = listing;
  const isKnown = headers['if-none-match'] === etag;
  return isKnown ? answer(304, { etag }) : answer(200, { ...JSON_TYPE, etag }, body);
}

function answer(status: number, headers: Answer['headers'], body = NO_BODY): Answer {
  return { status, headers, body };
}

/** Returns an error in the format of the service. */
function errorAnswer(
  status: number,
  detail = STATUS_CODES[status],
  headers: Answer['headers'] = {},
): Answer {
  return answer(status, { ...JSON_TYPE, ...headers }, Buffer.from(JSON.stringify({ detail })));
}

/** Decodes a segment of a path. One that is not percent-encoded UTF-8 stays, and names nothing. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export function send(response: ServerResponse, { status, headers, body }: Answer): void {
  const length = status === 304 ? {} : { 'content-length': body.length };
  response.writeHead(status, { ...headers, ...length }).end(body);
}

/**
 * Serves a world on 127.0.0.1, and lets it live.
 * @param options.port 0 is any free port
 * @param options.step called every `tickMs`
 * @throws {Error} of the system, when the port cannot be opened (`EADDRINUSE`)
 */
export async function startSimulator(
  world: World,
  {
    port,
    step,
    tickMs,
  }: { readonly port: number; readonly step: () => void; readonly tickMs: number },
): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const keys = new Map([[DEFAULT_KEY, undefined]]);
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    request.resume();
    send(response, answerTo(request, world, keys));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const ticks = setInterval(step, tickMs);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server listens on a port
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: async () => {
      clearInterval(ticks);
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

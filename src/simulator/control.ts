import type { ErrorInfo } from './world/error-info.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Endpoint, FaultPlan, FaultRule } from './faults/fault-plan.ts';
import { parseFaults } from './faults/fault-text.ts';
import type { Journal } from './world/journal.ts';
import type { KeyRing } from './world/key-ring.ts';
import type { World } from './world/world.ts';

/** The parts of a simulation that the control endpoints change. */
export interface Controlled {
  readonly world: World;
  readonly keys: KeyRing;
  readonly faults: FaultPlan;
  readonly journal: Journal;
}

type Json = Readonly<Record<string, unknown>>;

const PREFIX = '/_simulator/';
const ENDPOINTS: readonly Endpoint[] = ['list_prompts', 'list_datasets', 'get_prompt'];

export function isControl(request: IncomingMessage): boolean {
  return (request.url ?? '').startsWith(PREFIX);
}

/**
 * Serves the endpoints that control a simulation, for processes on the same machine; others get 403. Bodies and answers
 * are JSON. A bad request gets 400 with `{"error": text}`.
 *
 * - `GET /_simulator/moves?since=N`: the moves after number N, one JSON object a line
 * - `GET /_simulator/journal?since=N`: the journal's entries after number N, one a line
 * - `POST /_simulator/faults`: replaces the faults; a text for `parseFaults` (`""` for none), or an array of
 *   `{fault, project?, endpoint?, count?}` whose `fault` is such a text
 * - `POST /_simulator/prompts/{project}/{id}` with `{status, error_info?}`: moves a prompt, and creates it if it does not exist
 * - `DELETE /_simulator/prompts/{project}/{id}`: removes it
 * - `POST /_simulator/keys` with `{revoke: key}` or `{set: key, project?}`
 */
export async function control(
  controlled: Controlled,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (!isLoopback(request.socket.remoteAddress)) {
    request.resume();
    reply(response, 403, { error: 'Only clients on this machine may control the simulation.' });
    return;
  }
  try {
    const body = await text(request);
    const url = new URL(request.url ?? '', 'http://localhost');
    const since = readSince(url.searchParams.get('since') ?? '0');
    switch (`${request.method} ${url.pathname.slice(PREFIX.length).split('/', 1).join('')}`) {
      case 'GET moves':
        replyLines(response, controlled.world.moves(since));
        return;
      case 'GET journal':
        replyLines(
          response,
          controlled.journal.entries.filter((entry) => entry.seq > since),
        );
        return;
      case 'POST faults':
        controlled.faults.set(readRules(JSON.parse(body)));
        break;
      case 'POST prompts':
        putPrompt(controlled.world, url.pathname, readObject(JSON.parse(body)));
        break;
      case 'DELETE prompts':
        controlled.world.removePrompt(...promptOf(url.pathname));
        break;
      case 'POST keys':
        changeKeys(controlled.keys, readObject(JSON.parse(body)));
        break;
      default:
        reply(response, 404, { error: 'There is no such control.' });
        return;
    }
    reply(response, 200, { ok: true });
  } catch (error) {
    reply(response, 400, { error: error instanceof Error ? error.message : String(error) });
  }
}

function putPrompt(world: World, path: string, body: Json): void {
  const [project, id] = promptOf(path);
  const status = readText(body, 'status');
  const errorInfo = readErrorInfo(body['error_info']);
  if (world.projectOfPrompt(id) === undefined) world.addPrompt(project, { id, status });
  world.setStatus(project, id, status, errorInfo);
}

function changeKeys(keys: KeyRing, body: Json): void {
  const project = body['project'] === undefined ? undefined : readText(body, 'project');
  if (body['revoke'] === undefined) keys.set(readText(body, 'set'), project);
  else keys.revoke(readText(body, 'revoke'));
}

function readRules(value: unknown): readonly FaultRule[] {
  if (typeof value === 'string') return parseFaults(value);
  if (!Array.isArray(value)) throw new Error('Expected a text or an array of rules.');
  return value.flatMap((entry: unknown) => {
    const rule = readObject(entry);
    const project = rule['project'] === undefined ? undefined : readText(rule, 'project');
    const endpoint = readEndpoint(rule['endpoint']);
    const count = readCount(rule['count']);
    return parseFaults(readText(rule, 'fault')).map(({ fault, probability }) => {
      return { fault, probability, project, endpoint, count };
    });
  });
}

function readEndpoint(value: unknown): Endpoint | undefined {
  const known = ENDPOINTS.find((endpoint) => endpoint === value);
  if (value === undefined || known !== undefined) return known;
  throw new Error(`Expected "endpoint" to be one of ${ENDPOINTS.join(', ')}.`);
}

function readCount(value: unknown): number | undefined {
  if (value === undefined || (typeof value === 'number' && value > 0)) return value;
  throw new Error('Expected "count" to be a number above 0.');
}

function readErrorInfo(value: unknown): ErrorInfo | null | undefined {
  if (value === undefined || value === null) return value;
  const info = readObject(value);
  return { error_id: readText(info, 'error_id'), error_msg: readText(info, 'error_msg') };
}

function readSince(given: string): number {
  if (/^\d{1,15}$/.test(given)) return Number(given);
  throw new Error('Expected "since" to be a whole number.');
}

function readObject(value: unknown): Json {
  if (!isJson(value)) throw new Error('Expected a JSON object.');
  return value;
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readText(body: Json, name: string): string {
  const value = body[name];
  if (typeof value !== 'string') throw new Error(`Expected "${name}" to be a text.`);
  return value;
}

function promptOf(path: string): readonly [project: string, id: string] {
  const [, project, id] = path.slice(PREFIX.length).split('/').map(decodeURIComponent);
  if (project === undefined || id === undefined)
    throw new Error('Expected prompts/{project}/{id}.');
  return [project, id];
}

function isLoopback(address: string | undefined): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address ?? '');
}

function reply(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

function replyLines(response: ServerResponse, values: readonly unknown[]): void {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  for (const value of values) response.write(`${JSON.stringify(value)}\n`);
  response.end();
}

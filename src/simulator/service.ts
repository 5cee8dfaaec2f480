import type { IncomingMessage } from 'node:http';
import {
  type Answer,
  bodyAnswer,
  emptyAnswer,
  errorAnswer,
  jsonAnswer,
  validationAnswer,
} from './answer.ts';
import type { Endpoint } from './faults/fault-plan.ts';
import type { KeyRing } from './world/key-ring.ts';
import { createListings } from './world/listings.ts';
import { type Kind, promptDetail } from './world/records.ts';
import type { World } from './world/world.ts';

export type EtagStyle = 'none' | 'weak' | 'strong';

export interface ServiceOptions {
  readonly world: World;
  readonly keys: KeyRing;
  /** ETags of listings. Without `none`, a matching If-None-Match is answered 304. */
  readonly etag: EtagStyle;
}

/** The answer of a service without faults, and the subject of the request. */
export interface FaultFreeAnswer {
  readonly answer: Answer;
  readonly endpoint: Endpoint | 'other';
  /** Project of the request; undefined if the request names nothing that exists. */
  readonly project: string | undefined;
}

interface Route {
  readonly endpoint: Endpoint;
  readonly pattern: RegExp;
  readonly parameter: 'projectid' | 'promptid';
}

const ROUTES: readonly Route[] = [
  {
    endpoint: 'list_datasets',
    pattern: /^\/v2\/projects\/([^/]+)\/datasets\/$/,
    parameter: 'projectid',
  },
  {
    endpoint: 'list_prompts',
    pattern: /^\/v2\/projects\/([^/]+)\/prompts\/$/,
    parameter: 'projectid',
  },
  { endpoint: 'get_prompt', pattern: /^\/v2\/prompts\/([^/]+)\/$/, parameter: 'promptid' },
];
const MAX_ID_LENGTH = 512;

/**
 * Answers requests as the documentation of the Evaluation Service describes. For cases that it does not describe, answers
 * like FastAPI: 401 for a missing or wrong key, 403 for the key of another project, 404, 405, and 307 to a path with a slash.
 */
export function createService(
  options: ServiceOptions,
): (request: IncomingMessage) => FaultFreeAnswer {
  const { world, keys } = options;
  const listings = createListings(world);

  function answerTo(request: IncomingMessage, route: Route, text: string): FaultFreeAnswer {
    const { endpoint, parameter } = route;
    const decoded = decode(text);
    const id = decoded ?? '';
    const project = endpoint === 'get_prompt' ? world.projectOfPrompt(id) : id;
    const known = project !== undefined && world.prompts(project) !== undefined;
    const about = { endpoint, project: known ? project : undefined };

    const key = keyOf(request);
    if (request.method !== 'GET') {
      return { ...about, answer: errorAnswer(405, undefined, { allow: 'GET' }) };
    }
    if (key === '') return { ...about, answer: errorAnswer(401, 'API key is missing') };
    if (!keys.isValid(key)) return { ...about, answer: errorAnswer(401, 'API key is not valid') };
    const fault = decoded === undefined ? malformed(parameter) : invalid(parameter, decoded);
    if (fault !== undefined) return { ...about, answer: fault };
    if (!known) return { ...about, answer: errorAnswer(404) };
    if (!keys.allows(key, project)) {
      return { ...about, answer: errorAnswer(403, 'API key is not valid for this project') };
    }
    if (endpoint === 'get_prompt') {
      const prompt = world.prompts(project)?.get(id);
      return {
        ...about,
        answer: prompt ? jsonAnswer(200, promptDetail(prompt)) : errorAnswer(404),
      };
    }
    const kind = endpoint === 'list_prompts' ? 'prompt' : 'dataset';
    return { ...about, answer: listingAnswer(request, project, kind) };
  }

  function listingAnswer(request: IncomingMessage, project: string, kind: Kind): Answer {
    const rendered = listings(project, kind);
    if (rendered === undefined) return errorAnswer(404);
    const { body, items } = rendered;
    const hasEtag = options.etag !== 'none';
    const asked = hasEtag ? request.headers['if-none-match'] : undefined;
    const listing = { project, kind, items, conditional: asked !== undefined };
    if (!hasEtag) return { ...bodyAnswer(200, body, {}), listing };
    const etag = rendered.etag();
    const headers = { etag: `${options.etag === 'weak' ? 'W/' : ''}"${etag}"` };
    if (asked !== undefined && matchesEtag(asked, etag)) {
      return { ...emptyAnswer(304, headers), listing };
    }
    return { ...bodyAnswer(200, body, headers), listing };
  }

  return (request) => {
    const [path = '', query] = (request.url ?? '').split('?', 2);
    const found = findRoute(path);
    if (found === undefined) {
      const slashed = findRoute(`${path}/`) !== undefined;
      const answer = slashed ? redirectToSlash(request, path, query) : errorAnswer(404);
      return { answer, endpoint: 'other', project: undefined };
    }
    return answerTo(request, found.route, found.text);
  };
}

/** Returns the API key of a request; '' if it has none. */
export function keyOf(request: IncomingMessage): string {
  const key = request.headers['x-api-key'];
  return typeof key === 'string' ? key : '';
}

function findRoute(path: string): { readonly route: Route; readonly text: string } | undefined {
  for (const route of ROUTES) {
    const text = route.pattern.exec(path)?.[1];
    if (text !== undefined) return { route, text };
  }
  return undefined;
}

function redirectToSlash(request: IncomingMessage, path: string, query?: string): Answer {
  const tail = query === undefined ? '' : `?${query}`;
  return emptyAnswer(307, { location: `http://${request.headers.host ?? ''}${path}/${tail}` });
}

/** Decodes a path segment; returns undefined if its percent-encoding is invalid or is not UTF-8. */
function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function malformed(parameter: string): Answer {
  return validationAnswer(parameter, 'String should be valid percent-encoded UTF-8', 'value_error');
}

function invalid(parameter: string, id: string): Answer | undefined {
  if (Array.from(id).length > MAX_ID_LENGTH) {
    const msg = `String should have at most ${MAX_ID_LENGTH} characters`;
    return validationAnswer(parameter, msg, 'string_too_long');
  }
  if (/\p{Cc}/u.test(id)) {
    const msg = 'String should have no control characters';
    return validationAnswer(parameter, msg, 'string_pattern_mismatch');
  }
  return undefined;
}

/** Returns whether an If-None-Match header contains this ETag, weak or strong. */
function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
    .some((tag) => tag === '*' || tag === `"${etag}"`);
}

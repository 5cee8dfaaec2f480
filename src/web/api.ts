import { Hono, type Context } from 'hono';
import { etag } from 'hono/etag';
import type { z } from 'zod';
import { StoreError } from '../monitor/errors.ts';
import type {
  Clock,
  PollHealth,
  ProjectSnapshot,
  PromptPosition,
  RowQuery,
  StatusRow,
  StoreReader,
} from '../monitor/ports.ts';
import { failureFields, isoTime, statusFields, transitionFields } from '../monitor/row-fields.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { readId } from './events/event.ts';
import type { EventFeed } from './events/feed.ts';
import { streamEvents } from './events/stream.ts';
import { openApiDocument } from './openapi.ts';
import { operations } from './operations.ts';
import { readParameters } from './parameters.ts';
import { RequestError } from './request-error.ts';

/** What the API answers from. */
export interface ApiContent {
  readonly store: Pick<
    StoreReader,
    'snapshot' | 'projects' | 'statuses' | 'transitions' | 'failures'
  >;
  readonly feed: EventFeed;
  readonly clock: Clock;
  /** How a project's polls go, right also while the store cannot be written. */
  health(project: string): PollHealth;
  /** When a project is polled next, epoch ms; undefined if it is not configured. */
  nextPollAt(project: string): number | undefined;
}

/**
 * `/api/v1` (contract 3): `{"data": [rows], "next_cursor": null or text}` with ETags, and the events as a stream. What
 * each path takes is in {@link operations}.
 */
export function createApi(content: ApiContent): Hono {
  const { store, feed, clock } = content;
  const api = new Hono();
  let document: object | undefined;

  async function read<Parameters extends z.ZodObject>(
    context: Context,
    { parameters }: { readonly parameters: Parameters },
  ): Promise<z.output<Parameters>> {
    const query = readParameters(context.req.url, parameters);
    const project = 'project' in query ? query['project'] : undefined;
    if (typeof project === 'string' && !(await store.projects()).includes(project)) {
      throw new RequestError(404, `unknown project ${JSON.stringify(project)}`);
    }
    return query;
  }

  // Before the ETags: a stream has none.
  api.get('/events', async (context) => {
    const { project, type, after } = await read(context, operations['/events']);
    // A client that resumes sends it, and repeats the address that it began with.
    const given = context.req.header('last-event-id') ?? after;
    const start = given === undefined || given === '' ? await feed.end() : readId(given);
    if (start === undefined)
      throw new RequestError(400, 'Last-Event-ID must be the id of an event');
    const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' };
    if (context.req.method === 'HEAD') return context.body(null, 200, headers);
    return context.body(streamEvents(feed, clock, { start, project, type }), 200, headers);
  });

  api.use(etag());
  api.use(async (context, next) => {
    await next();
    context.header('cache-control', 'no-cache');
  });

  api.get('/openapi.json', async (context) => {
    await read(context, operations['/openapi.json']);
    document ??= openApiDocument();
    return context.json(document);
  });

  api.get('/projects', async (context) => {
    await read(context, operations['/projects']);
    const { projects } = await store.snapshot();
    const data = projects.map((project) => projectFields(project, content));
    return context.json({ data, next_cursor: null });
  });

  api.get('/prompts', async (context) => {
    const query = await read(context, operations['/prompts']);
    const afterPrompt = query.cursor === undefined ? undefined : promptPosition(query.cursor);
    const rows = await store.statuses({ ...ofPage(query), status: query.status, afterPrompt });
    return context.json(page(rows, query.limit, statusFields, positionOf));
  });

  api.get('/transitions', async (context) => {
    const query = await read(context, operations['/transitions']);
    const rows = await store.transitions({ ...ofPage(query), afterTransition: idOf(query.cursor) });
    return context.json(
      page(rows, query.limit, transitionFields, ({ transitionId }) => transitionId),
    );
  });

  api.get('/failures', async (context) => {
    const query = await read(context, operations['/failures']);
    const rows = await store.failures({ ...ofPage(query), afterTransition: idOf(query.cursor) });
    return context.json(page(rows, query.limit, failureFields, ({ transitionId }) => transitionId));
  });

  api.onError((error, context) => {
    if (error instanceof RequestError) return context.json({ error: error.message }, error.status);
    if (!(error instanceof StoreError)) throw error;
    return context.json({ error: 'the store cannot be read at the moment' }, 503);
  });
  return api;
}

interface PageQuery {
  readonly project?: string | undefined;
  readonly limit: number;
}

/** One row more than asked for tells whether there are more. */
function ofPage({ project, limit }: PageQuery): RowQuery {
  return { project, limit: limit + 1 };
}

function page<Row>(
  rows: readonly Row[],
  limit: number,
  toFields: (row: Row) => object,
  toPosition: (row: Row) => unknown,
): object {
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  const next_cursor = last === undefined ? null : writeCursor(toPosition(last));
  return { data: shown.map((row) => toFields(row)), next_cursor };
}

const BAD_CURSOR = 'cursor must be the next_cursor of an answer to the same path';

function idOf(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const id = readCursor(cursor);
  if (typeof id === 'number' && Number.isSafeInteger(id)) return id;
  throw new RequestError(400, BAD_CURSOR);
}

function positionOf({ since, project, promptId }: StatusRow): unknown {
  return [since, project, promptId];
}

function promptPosition(cursor: string): PromptPosition {
  const position = readCursor(cursor);
  if (Array.isArray(position)) {
    const [since, project, promptId]: readonly unknown[] = position;
    if (
      typeof since === 'number' &&
      Number.isSafeInteger(since) &&
      typeof project === 'string' &&
      typeof promptId === 'string'
    ) {
      return { since, project, promptId };
    }
  }
  throw new RequestError(400, BAD_CURSOR);
}

function projectFields({ project, listings }: ProjectSnapshot, content: ApiContent): object {
  const health = content.health(project);
  const prompts = listings.get('prompt');
  return {
    project,
    up: health.up,
    consecutive_failures: health.consecutiveFailures,
    reason: health.reason ?? null,
    last_poll: timeOrNull(health.lastPollAt),
    last_success: timeOrNull(health.lastSuccessAt),
    next_poll: timeOrNull(content.nextPollAt(project)),
    prompts: Object.fromEntries(prompts?.counts ?? []),
    missing: prompts?.missing ?? 0,
  };
}

function timeOrNull(ms: number | undefined): string | null {
  return ms === undefined ? null : isoTime(ms);
}

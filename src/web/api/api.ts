import { hash } from 'node:crypto';
import { Hono, type Context } from 'hono';
import { etag } from 'hono/etag';
import { HTTPException } from 'hono/http-exception';
import { stream } from 'hono/streaming';
import { z } from 'zod';
import { ownTurn } from '../../domain/turns.ts';
import { parseMoment, timeOf } from '../../domain/options.ts';
import { cleanUnicode, visibleJson } from '../../domain/visible.ts';
import type {
  ExperimentQuery,
  ExperimentRow,
  RowQuery,
  StatusRow,
  TransitionRow,
} from '../../monitor/ports/store.ts';
import {
  experimentFields,
  failureFields,
  projectFields,
  promptFields,
  transitionFields,
} from '../../rows/fields.ts';
import type { WebContent } from '../content.ts';
import { readId } from '../events/page.ts';
import type { ConnectionEnv } from '../limits.ts';
import { causesAnswer, readCursor, readPage, type RowSource } from './answers.ts';
import { openApiDocument } from './openapi.ts';
import { operations, readParameters } from './operations.ts';

const JSON_HEADERS = { 'content-type': 'application/json' };
const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // nginx would keep events back until they fill a buffer.
  'x-accel-buffering': 'no',
};
const CLEAN_TEXT = z.string().refine((text) => cleanUnicode(text) === text);
const PROMPT_POSITION = z
  .tuple([z.int(), CLEAN_TEXT, CLEAN_TEXT])
  .transform(([since, project, promptId]) => ({ since, project, promptId }));
const EXPERIMENT_POSITION = z
  .tuple([z.int(), z.int()])
  .transform(([movedAt, key]) => ({ movedAt, key }));
/** Maximum number of failures in one read: a row with an `error_info` has up to 10 kB. */
const MAX_FAILURES_PER_READ = 100;

/**
 * `/api/v1` (docs/specification.md#api): `{"data": [rows], "next_cursor": null or text}` or `{"data": row}` with ETags, and the
 * event stream. {@link operations} has the parameters of each path.
 */
export function createApi(content: WebContent): Hono<ConnectionEnv> {
  const { store, feed, clock, onBug } = content;
  const api = new Hono<ConnectionEnv>();
  let document: Body | undefined;
  let lastProjects: Promise<unknown> = Promise.resolve();
  let nextProjects: Promise<Body> | undefined;

  async function read<Parameters extends z.ZodObject>(
    context: Context,
    { parameters }: { readonly parameters: Parameters },
  ): Promise<z.output<Parameters>> {
    const query = readParameters(context.req.url, parameters);
    const project = context.req.param('project') ?? ('project' in query && query['project']);
    if (typeof project === 'string' && !(await store.projects()).includes(project)) {
      throw unknown('project', project);
    }
    return query;
  }

  // Registered before the ETag middleware: a stream has no ETag.
  api.get('/events', async (context) => {
    const { project, type, after } = await read(context, operations['/events']);
    // A client that reconnects sends `Last-Event-ID` with the URL of its first request, so the header overrides `after`.
    const given = context.req.header('last-event-id') ?? after;
    const start = given ? readId(given) : await feed.end();
    if (start === undefined) {
      throw new HTTPException(400, { message: 'Last-Event-ID must be the id of an event' });
    }
    if (context.req.method === 'HEAD') return context.body(null, 200, STREAM_HEADERS);
    for (const [name, value] of Object.entries(STREAM_HEADERS)) context.header(name, value);
    return stream(
      context,
      (client) => feed.send(client, clock, { start, project, type }),
      async (error) => onBug(error),
    );
  });

  api.use(etag());
  api.use(async (context, next) => {
    await next();
    context.header('cache-control', 'no-cache');
  });

  api.get('/openapi.json', async (context) => {
    await read(context, operations['/openapi.json']);
    document ??= bodyOf(openApiDocument());
    return send(context, document);
  });

  api.get('/config', async (context) => {
    await read(context, operations['/config']);
    return send(context, bodyOf(content.config()));
  });

  api.get('/projects', async (context) => {
    await read(context, operations['/projects']);
    // Requests that come while an answer is made share the next one: with 10,000 projects it has 5 MB.
    nextProjects ??= lastProjects.then(() => {
      nextProjects = undefined;
      const answer = allProjects(content);
      lastProjects = answer.catch(() => {});
      return answer;
    });
    return send(context, await nextProjects);
  });

  api.get('/projects/:project', async (context) => {
    await read(context, operations['/projects/{project}']);
    const { project } = context.req.param();
    const [row] = (await content.snapshot(project)).projects;
    if (row === undefined) throw unknown('project', project);
    return send(context, bodyOf({ data: projectFields(row, content.project(project)) }));
  });

  api.get('/experiments', async (context) => {
    const query = await read(context, operations['/experiments']);
    return send(context, toBody(await readPage(experiments(store, query), query.limit)));
  });

  api.get('/prompts', async (context) => {
    const query = await read(context, operations['/prompts']);
    return send(context, toBody(await readPage(prompts(content, query), query.limit)));
  });

  api.get('/prompts/:project/:prompt_id', async (context) => {
    await read(context, operations['/prompts/{project}/{prompt_id}']);
    const { project, prompt_id: promptId } = context.req.param();
    const [row] = await store.statuses({ project, promptId });
    if (row === undefined) throw unknown('prompt', promptId);
    const data = promptFields(row, content.project(project)?.expectations);
    return send(context, bodyOf({ data }));
  });

  api.get('/transitions', async (context) => {
    const query = inHistory(await read(context, operations['/transitions']), clock.now());
    const rows = byTransition(query, (page) => store.transitions(page), transitionFields);
    return send(context, toBody(await readPage(rows, query.limit)));
  });

  api.get('/failures', async (context) => {
    const query = inHistory(await read(context, operations['/failures']), clock.now());
    const rows = byTransition(
      query,
      (page) => store.failures(page),
      failureFields,
      MAX_FAILURES_PER_READ,
    );
    return send(context, toBody(await readPage(rows, query.limit)));
  });

  api.get('/causes', async (context) => {
    const { since, limit, ...only } = await read(context, operations['/causes']);
    const start = timeOf(parseMoment(since), clock.now()) ?? 0;
    const list = await store.causes({ ...only, since: start, limit });
    return send(context, toBody(await causesAnswer(list)));
  });
  return api;
}

async function allProjects(content: WebContent): Promise<Body> {
  const { projects } = await content.snapshot();
  await ownTurn();
  const data = projects.map((snapshot) =>
    projectFields(snapshot, content.project(snapshot.project)),
  );
  return bodyOf({ data, next_cursor: null });
}

/** Source of experiments, which are read once, because each read sorts all of them. */
function experiments(
  store: WebContent['store'],
  { cursor, ...only }: ExperimentQuery & { readonly cursor?: string | undefined },
): RowSource<ExperimentRow> {
  const start = readCursor(cursor, EXPERIMENT_POSITION);
  return {
    read: (last, limit) => store.experiments({ ...only, limit, after: last ?? start }),
    maxPerRead: Infinity,
    toFields: experimentFields,
    toPosition: ({ movedAt = 0, key }) => [movedAt, key],
  };
}

/** Returns a query with the part of the history that its parameters name. */
function inHistory<Query extends HistoryParameters>(
  { since, until, prompt_id: promptId, ...query }: Query,
  now: number,
) {
  const at = (text = '') => timeOf(parseMoment(text), now);
  return { ...query, since: at(since), until: at(until), promptId };
}

interface HistoryParameters {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly prompt_id?: string | undefined;
}

/** Source of prompts, which are read once for the same reason. */
function prompts(
  content: WebContent,
  { cursor, ...only }: RowQuery & { readonly cursor?: string | undefined },
): RowSource<StatusRow> {
  const start = readCursor(cursor, PROMPT_POSITION);
  return {
    read: (last = start, limit) => content.store.statuses({ ...only, limit, afterPrompt: last }),
    maxPerRead: Infinity,
    toFields: (row) => promptFields(row, content.project(row.project)?.expectations),
    toPosition: ({ since, project: id, promptId }) => [since, id, promptId],
  };
}

/** Source of rows that the store orders by transition; the number of the transition is the position. */
function byTransition<Row extends Pick<TransitionRow, 'transitionId'>>(
  { cursor, ...only }: RowQuery & { readonly cursor?: string | undefined },
  read: (query: RowQuery) => Promise<readonly Row[]>,
  toFields: (row: Row) => object,
  maxPerRead = Infinity,
): RowSource<Row> {
  const start = readCursor(cursor, z.int());
  return {
    read: (last, count) =>
      read({ ...only, limit: count, afterTransition: last?.transitionId ?? start }),
    maxPerRead,
    toFields,
    toPosition: ({ transitionId }) => transitionId,
  };
}

function unknown(what: 'project' | 'prompt', id: string): HTTPException {
  return new HTTPException(404, { message: `unknown ${what} ${JSON.stringify(id)}` });
}

function bodyOf(answer: object): Body {
  return toBody(visibleJson(JSON.stringify(answer)));
}

interface Body {
  readonly bytes: Buffer<ArrayBuffer>;
  readonly etag: string;
}

/** Returns JSON to send, with its ETag. The ETag middleware would copy the body to compute it. */
function toBody(json: string): Body {
  const bytes = Buffer.from(json);
  return { bytes, etag: `"${hash('sha1', bytes)}"` };
}

function send(context: Context, { bytes, etag: tag }: Body): Response {
  return context.body(bytes, 200, { ...JSON_HEADERS, etag: tag });
}

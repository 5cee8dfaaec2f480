import { Hono, type Context } from 'hono';
import { PROMPT_STATUSES, type Status } from '../domain/status.ts';
import type {
  PollHealth,
  ProjectSnapshot,
  PromptPosition,
  RowQuery,
  StatusRow,
  StoreReader,
} from '../monitor/ports.ts';
import { failureFields, isoTime, statusFields, transitionFields } from '../monitor/row-fields.ts';
import { readCursor, writeCursor } from './cursor.ts';

/** What the API answers from. */
export interface ApiContent {
  readonly store: Pick<
    StoreReader,
    'snapshot' | 'projects' | 'statuses' | 'transitions' | 'failures'
  >;
  /** How a project's polls go, right also while the store cannot be written. */
  health(project: string): PollHealth;
  /** When a project is polled next, epoch ms; undefined if it is not configured. */
  nextPollAt(project: string): number | undefined;
}

const DEFAULT_LIMIT = 100;
const LARGEST_LIMIT = 1000;

/** A request that asks for what cannot be; its message is for whoever asked. */
class RequestError extends Error {
  readonly status: 400 | 404;

  constructor(status: 400 | 404, message: string) {
    super(message);
    this.status = status;
  }
}

/** `/api/v1` (contract 3): `{"data": [rows], "next_cursor": null or text}`. */
export function createApi(content: ApiContent): Hono {
  const { store } = content;
  const api = new Hono();

  async function queryOf(context: Context, known: readonly string[]): Promise<PageQuery> {
    const asked = context.req.query();
    for (const name of Object.keys(asked)) {
      if (!known.includes(name)) throw new RequestError(400, `unknown parameter ${name}`);
    }
    const { project, status, limit, cursor } = asked;
    if (project !== undefined && !(await store.projects()).includes(project)) {
      throw new RequestError(404, `unknown project ${JSON.stringify(project)}`);
    }
    return { project, status: statusOf(status), limit: limitOf(limit), cursor };
  }

  api.get('/projects', async (context) => {
    await queryOf(context, []);
    const { projects } = await store.snapshot();
    const data = projects.map((project) => projectFields(project, content));
    return context.json({ data, next_cursor: null });
  });

  api.get('/prompts', async (context) => {
    const query = await queryOf(context, ['project', 'status', 'limit', 'cursor']);
    const afterPrompt = query.cursor === undefined ? undefined : promptPosition(query.cursor);
    const rows = await store.statuses({ ...ofPage(query), afterPrompt });
    return context.json(page(rows, query.limit, statusFields, positionOf));
  });

  api.get('/transitions', async (context) => {
    const query = await queryOf(context, ['project', 'limit', 'cursor']);
    const rows = await store.transitions({ ...ofPage(query), afterTransition: idOf(query.cursor) });
    return context.json(
      page(rows, query.limit, transitionFields, ({ transitionId }) => transitionId),
    );
  });

  api.get('/failures', async (context) => {
    const query = await queryOf(context, ['project', 'limit', 'cursor']);
    const rows = await store.failures({
      ...ofPage(query),
      afterTransition: idOf(query.cursor),
    });
    return context.json(page(rows, query.limit, failureFields, ({ transitionId }) => transitionId));
  });

  api.onError((error, context) =>
    error instanceof RequestError
      ? context.json({ error: error.message }, error.status)
      : context.json({ error: 'the store cannot be read at the moment' }, 503),
  );
  return api;
}

interface PageQuery {
  readonly project: string | undefined;
  readonly status: Status | undefined;
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** One row more than asked for tells whether there are more. */
function ofPage({ project, status, limit }: PageQuery): RowQuery {
  return { project, status, limit: limit + 1 };
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

function statusOf(text: string | undefined): Status | undefined {
  if (text === undefined) return undefined;
  const status = PROMPT_STATUSES.find((each) => each === text.toUpperCase());
  if (status !== undefined) return status;
  throw new RequestError(400, `status must be one of ${PROMPT_STATUSES.join(', ')}`);
}

function limitOf(text: string | undefined): number {
  const limit = text === undefined ? DEFAULT_LIMIT : Number(text);
  if (/^\d+$/.test(text ?? '1') && limit >= 1 && limit <= LARGEST_LIMIT) return limit;
  throw new RequestError(400, `limit must be a whole number from 1 to ${LARGEST_LIMIT}`);
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

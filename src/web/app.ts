import { Hono, type Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { methodNotAllowed } from 'hono/method-not-allowed';
import { z } from 'zod';
import { projectPath } from '../domain/page-path.ts';
import { pollResultFields } from '../rows/fields.ts';
import { createApi } from './api/api.ts';
import { project, readParameters } from './api/operations.ts';
import type { PollNow, WebContent } from './content.ts';
import { answerError } from './errors.ts';
import { type ConnectionEnv, limitAnswers } from './limits.ts';
import { createPage } from './page/routes.ts';
import { PATHS } from './paths.ts';
import { createScrapes } from './scrapes.ts';
import { type ChangingProtection, guard, type ServerNames } from './security.ts';

const STATUS_OF_REFUSAL = {
  unknown: 404,
  elsewhere: 409,
  paused: 409,
  running: 409,
  busy: 503,
} as const;
const POLL_PARAMETERS = z.object({ project: project.describe('Polls only this project.') });

/** Time that a client has to read an answer, ms. */
const READ_MS = 15_000;

/** The HTTP interface (docs/specification.md#endpoints). Every error is JSON: `{"error": text}`. */
export function createApp(
  content: WebContent,
  names: () => ServerNames,
  protection?: ChangingProtection,
): Hono<ConnectionEnv> {
  const app = new Hono<ConnectionEnv>();
  app.onError((error) => answerError(error, content.onBug));
  app.notFound((context) => context.json({ error: 'there is nothing at this path' }, 404));

  // Probes need neither a login nor a free place: they are registered before everything that can refuse a request.
  app.get(PATHS.healthy, (context) => context.text('evalwatch is alive.\n'));
  app.get(PATHS.ready, (context) =>
    content.isReady()
      ? context.text('evalwatch is ready.\n')
      : context.text('evalwatch is not ready.\n', 503),
  );
  guard(app, protection, names);
  const limits = new Map<string, ReturnType<typeof limitAnswers>>([
    [PATHS.metrics, limitAnswers(256, READ_MS)],
    [PATHS.events, limitAnswers(500)],
  ]);
  const limitOthers = limitAnswers(32, READ_MS);
  app.use((context, next) => (limits.get(context.req.path) ?? limitOthers)(context, next));
  app.use(
    methodNotAllowed({
      app,
      onMethodNotAllowed: ({ req, json }, methods) =>
        json({ error: `${req.method} is not allowed for this path` }, 405, {
          allow: methods.join(', '),
        }),
    }),
  );

  app.get(PATHS.metrics, createScrapes(content.renderMetrics));
  app.route('/', createPage(content));
  app.route(PATHS.api, createApi(content));

  app.post(PATHS.reload, async (context) => {
    requireLifecycle(content, 'reload over HTTP is off');
    // A reload takes as long as its database.
    context.env.outgoing.setTimeout(0);
    const { ok, reasons } = await content.reload();
    return ok ? context.json({ ok }) : context.json({ error: reasons.join('\n') }, 500);
  });
  app.post(PATHS.poll, async (context) => {
    requireLifecycle(content, 'polls on request are off');
    if (!content.isReady()) throw new HTTPException(503, { message: 'evalwatch is not ready' });
    return await answerPollNow(context, content.pollNow);
  });
  return app;
}

function requireLifecycle(content: WebContent, what: string): void {
  if (content.isLifecycleEnabled()) return;
  throw new HTTPException(403, { message: `${what}: set web.enable_lifecycle to true` });
}

/**
 * Answers `POST /-/poll` with JSON. A browser that sent a form returns to the page of the project, also if a poll of the
 * project already runs.
 */
async function answerPollNow(context: Context, pollNow: PollNow): Promise<Response> {
  const { project: id } = readParameters(context.req.url, POLL_PARAMETERS);
  const result = await pollNow(id);
  const isRefused = 'refusal' in result;
  const isForm = context.req.header('accept')?.includes('text/html') === true;
  if (isForm && (!isRefused || result.refusal === 'running')) {
    // Relative: a proxy may serve evalwatch below a path.
    const page = id === undefined ? '../' : `../${projectPath(id)}`;
    return context.body(null, 303, { location: page });
  }
  if (isRefused) {
    const headers = result.refusal === 'busy' ? { 'retry-after': '1' } : undefined;
    return context.json({ error: result.error }, STATUS_OF_REFUSAL[result.refusal], headers);
  }
  const polled = result.polled.map(pollResultFields);
  return context.json({ polled, pending: result.pending }, result.pending === 0 ? 200 : 202);
}

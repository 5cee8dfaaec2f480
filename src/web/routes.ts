import { Hono, type Context } from 'hono';
import { createApi, type ApiContent } from './api/api.ts';
import type { ConnectionEnv } from './limits/client.ts';
import type { OnBug } from './handler.ts';
import type { PageContent } from './page/model.ts';
import { createPage } from './page/routes.ts';
import { PATHS } from './paths.ts';
import { answerPollNow, type PollNow } from './poll-now.ts';
import type { ReloadResult } from './reload-result.ts';
import { createScrapes, type RenderMetrics } from './scrapes.ts';

/** Sources of the pages and endpoints. */
export interface WebContent {
  readonly renderMetrics: RenderMetrics;
  readonly metricsContentType: string;
  /** Store open, scheduler running, not stopping. */
  isReady(): boolean;
  readonly api: ApiContent;
  readonly page: PageContent;
  /** Receives unexpected errors (bugs). The daemon continues: no request may end it. */
  readonly onBug: OnBug;
  /** Whether the configuration allows a reload and polls on request. */
  isLifecycleEnabled(): boolean;
  /** Reloads the configuration. `reasons` has the errors of a failed reload. */
  reload(): Promise<ReloadResult>;
  readonly pollNow: PollNow;
}

/** The HTTP interface (docs/specification.md#endpoints). Every error is JSON: `{"error": text}`. */
export function createRoutes(content: WebContent): Hono<ConnectionEnv> {
  const app = new Hono<ConnectionEnv>();

  app.get(PATHS.healthy, (context) => context.text('evalwatch is alive.\n'));
  app.get(PATHS.ready, (context) =>
    content.isReady()
      ? context.text('evalwatch is ready.\n')
      : context.text('evalwatch is not ready.\n', 503),
  );
  app.get(PATHS.metrics, createScrapes(content.renderMetrics, content.metricsContentType));
  app.route('/', createPage(content.page));
  app.route(PATHS.api, createApi(content.api));

  app.post(PATHS.reload, async (context) => {
    if (!content.isLifecycleEnabled()) return disabled(context, 'reload over HTTP is off');
    const { ok, reasons } = await content.reload();
    return ok ? context.json({ ok }) : context.json({ error: reasons.join('\n') }, 500);
  });

  app.post(PATHS.poll, async (context) => {
    if (!content.isLifecycleEnabled()) return disabled(context, 'polls on request are off');
    if (!content.isReady()) return context.json({ error: 'evalwatch is not ready' }, 503);
    return await answerPollNow(context, content.pollNow);
  });

  const allowed = new Map(
    app.routes
      .filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => [path, method === 'GET' ? 'GET, HEAD' : method]),
  );
  for (const [path, allow] of allowed) {
    app.all(path, ({ req, json }) =>
      json({ error: `${req.method} is not allowed for this path` }, 405, { allow }),
    );
  }
  app.notFound((context) => context.json({ error: 'there is nothing at this path' }, 404));
  app.onError((error, context: Context) => {
    content.onBug(error);
    return context.json({ error: 'evalwatch could not answer this request' }, 500);
  });
  return app;
}

function disabled(context: Context, what: string): Response {
  return context.json({ error: `${what}: set web.enable_lifecycle to true` }, 403);
}

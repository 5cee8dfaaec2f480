import { Hono, type Context } from 'hono';
import { html } from 'hono/html';
import { createApi, type ApiContent } from './api.ts';

/** What the pages and endpoints show. */
export interface WebContent {
  readonly version: string;
  /** The exposition, text format 0.0.4. */
  renderMetrics(): Promise<string>;
  readonly metricsContentType: string;
  /** Store open, scheduler running, not stopping. */
  isReady(): boolean;
  readonly api: ApiContent;
  /** Whether the configuration allows a reload over HTTP. */
  mayReload(): boolean;
  /** Reloads the configuration; the reasons if that is not possible. */
  reload(): Promise<{ readonly ok: boolean; readonly reasons: readonly string[] }>;
}

const RELOAD = '/-/reload';

/** The HTTP interface (contract 3). Every error is JSON: `{"error": text}`. */
export function createRoutes(content: WebContent): Hono {
  const app = new Hono();

  app.get('/-/healthy', (context) => context.text('evalwatch is alive.\n'));
  app.get('/-/ready', (context) =>
    content.isReady()
      ? context.text('evalwatch is ready.\n')
      : context.text('evalwatch is not ready.\n', 503),
  );
  app.get('/metrics', async (context) =>
    context.body(await content.renderMetrics(), 200, {
      'content-type': content.metricsContentType,
    }),
  );
  app.get('/', (context) => context.html(landingPage(content.version)));

  app.route('/api/v1', createApi(content.api));

  app.post(RELOAD, async (context) => {
    if (!content.mayReload()) {
      return context.json({ error: 'web.enable_lifecycle does not allow this' }, 403);
    }
    const { ok, reasons } = await content.reload();
    return ok ? context.json({ ok }) : context.json({ error: reasons.join('\n') }, 500);
  });

  const known = new Set(
    app.routes.filter(({ method }) => method === 'GET').map(({ path }) => path),
  );
  app.notFound((context) =>
    context.req.path === RELOAD || known.has(context.req.path)
      ? context.json({ error: `${context.req.method} is not possible here` }, 405, {
          allow: context.req.path === RELOAD ? 'POST' : 'GET, HEAD',
        })
      : context.json({ error: 'there is nothing at this path' }, 404),
  );
  app.onError((_error, context: Context) =>
    context.json({ error: 'evalwatch could not answer this request' }, 500),
  );
  return app;
}

function landingPage(version: string) {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>evalwatch</title>
      </head>
      <body>
        <h1>evalwatch ${version}</h1>
        <p>Watches the evaluations of an Evaluation Service and tells when they fail.</p>
        <ul>
          <li><a href="/metrics">Metrics</a> for Prometheus</li>
          <li>
            <a href="/api/v1/projects">Projects</a>, <a href="/api/v1/prompts">prompts</a>,
            <a href="/api/v1/transitions">transitions</a> and
            <a href="/api/v1/failures">failures</a> as JSON
          </li>
          <li><a href="/-/healthy">Healthy</a>: the process is alive</li>
          <li><a href="/-/ready">Ready</a>: the store is open and projects are polled</li>
        </ul>
      </body>
    </html> `;
}

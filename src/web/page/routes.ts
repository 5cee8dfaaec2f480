import { Hono, type Context } from 'hono';
import { PROMPT_STATUSES } from '../../domain/status.ts';
import { busy } from '../limits/busy.ts';
import { requesterOf, type ConnectionEnv } from '../limits/client.ts';
import { loadAssets } from './assets.ts';
import { createPageCache } from './cache.ts';
import type { PageContent } from './content.ts';
import { layout, type Page } from './layout.ts';
import { overviewPage } from './overview.ts';
import { readOverview } from './model/overview-model.ts';
import { projectPage, readProject, unknownProjectPage } from './project.ts';

/** Allows the own files of the page only: no inline script or style, no other host, no frame. */
const SECURITY = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  // With no-referrer, a browser sends the form of the page with `Origin: null`, like a page of another site.
  'referrer-policy': 'same-origin',
};
const PAGE_HEADERS = { ...SECURITY, 'cache-control': 'no-cache' };
const ASSET_HEADERS = { ...SECURITY, 'cache-control': 'public, max-age=31536000, immutable' };
const MAX_FIND_LENGTH = 200;

/** Routes of the status page: `/`, `/projects/<id>` and their assets. */
export function createPage(content: PageContent): Hono<ConnectionEnv> {
  const assets = loadAssets();
  const cached = createPageCache<{ readonly status: 200 | 404; readonly body: string }>(
    content.clock,
  );
  const app = new Hono<ConnectionEnv>();

  async function render(page: Page, now: number, root: string): Promise<string> {
    const text = await layout(page, { assets, version: content.version, now, root });
    return text.toString();
  }

  function listOptions(now: number) {
    return { now, retentionMs: content.retentionMs, promptUrl: content.promptUrl() };
  }

  async function answer(
    context: Context<ConnectionEnv>,
    key: readonly unknown[],
    make: (now: number) => Promise<{ readonly status: 200 | 404; readonly body: string }>,
  ): Promise<Response> {
    const page = await cached(JSON.stringify(key), requesterOf(context), () =>
      make(content.clock.now()),
    );
    if (page === undefined) return busy(context);
    return context.html(page.body, page.status, PAGE_HEADERS);
  }

  app.get('/', (context) => {
    const find = (context.req.query('find') ?? '').slice(0, MAX_FIND_LENGTH);
    const page = pageOf(context.req.query('page'));
    return answer(context, ['/', find, page], async (now) => {
      const overview = await readOverview(content, now);
      const options = { query: { find, page }, isReady: content.isReady(), ...listOptions(now) };
      const body = await render(overviewPage(overview, content.monitor(), options), now, './');
      return { status: 200, body };
    });
  });

  app.get('/projects/:project', (context) => {
    const project = context.req.param('project');
    const asked = context.req.query('status');
    const status = PROMPT_STATUSES.find((each) => each === asked);
    return answer(context, ['/projects', project, status], async (now) => {
      const details = await readProject(content, project, { status, now });
      if (details === undefined) {
        return { status: 404, body: await render(unknownProjectPage(project), now, '../') };
      }
      const canPoll = content.isLifecycleEnabled();
      const page = projectPage(details, { project, status, canPoll, ...listOptions(now) });
      return { status: 200, body: await render(page, now, '../') };
    });
  });

  for (const { path, type, body } of [assets.style, assets.script, assets.icon]) {
    app.get(`/${path}`, (context) =>
      context.body(body, 200, { ...ASSET_HEADERS, 'content-type': type }),
    );
  }
  return app;
}

function pageOf(text: string | undefined): number {
  return text !== undefined && /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 1;
}

import { Hono, type Context } from 'hono';
import { PROMPT_STATUSES } from '../../domain/status.ts';
import type { ConnectionEnv } from '../limits/client.ts';
import { PATHS } from '../paths.ts';
import { loadAssets } from './assets.ts';
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
/** Maximum length of a parameter. */
const MAX_LENGTH = 200;
/** Time for which all clients get the same page, ms. */
const MAX_AGE_MS = 1000;

interface MadePage {
  readonly status: 200 | 404;
  readonly body: string;
}

/** Routes of the status page: `/`, `/projects/<id>` and their assets. */
export function createPage(content: PageContent): Hono<ConnectionEnv> {
  const assets = loadAssets();
  const pages = new Map<string, { readonly page: Promise<MadePage>; until: number }>();
  const app = new Hono<ConnectionEnv>();

  async function render(page: Page, now: number, root: string): Promise<string> {
    const text = await layout(page, { assets, version: content.version, now, root });
    return text.toString();
  }

  function listOptions(now: number) {
    return { now, retentionMs: content.retentionMs, promptUrl: content.promptUrl() };
  }

  /** Answers with the page of a key, which is made once for all clients and reused for a second. */
  async function answer(
    context: Context<ConnectionEnv>,
    key: readonly unknown[],
    make: (now: number) => Promise<MadePage>,
  ): Promise<Response> {
    const { clock } = content;
    for (const [old, { until }] of pages) if (until <= clock.monotonic()) pages.delete(old);
    const id = JSON.stringify(key);
    const known = pages.get(id);
    const entry = known ?? { page: make(clock.now()), until: Infinity };
    pages.set(id, entry);
    try {
      const { body, status } = await entry.page;
      if (known === undefined) entry.until = clock.monotonic() + MAX_AGE_MS;
      return context.html(body, status, PAGE_HEADERS);
    } catch (error) {
      entry.until = -Infinity;
      throw error;
    }
  }

  // The answer to "Poll now" leads back to a page, which has to show the poll.
  app.post(PATHS.poll, async (_context, next) => {
    await next();
    pages.clear();
  });

  app.get('/', (context) => {
    const find = (context.req.query('find') ?? '').slice(0, MAX_LENGTH);
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
    const asked = context.req.query('status')?.slice(0, MAX_LENGTH);
    const status = PROMPT_STATUSES.find((each) => each === asked?.toUpperCase());
    const unknownStatus = status === undefined ? asked : undefined;
    return answer(context, ['/projects', project, status, unknownStatus], async (now) => {
      const details = await readProject(content, project, { status, now });
      if (details === undefined) {
        return { status: 404, body: await render(unknownProjectPage(project), now, '../') };
      }
      const canPoll = content.isLifecycleEnabled();
      const asks = { project, status, unknownStatus, canPoll };
      const page = projectPage(details, { ...asks, ...listOptions(now) });
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

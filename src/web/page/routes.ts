import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parse } from 'node:path';
import { Hono, type Context } from 'hono';
import { PROMPT_STATUSES } from '../../domain/status.ts';
import type { WebContent } from '../content.ts';
import type { ConnectionEnv } from '../limits.ts';
import { PATHS } from '../paths.ts';
import { experimentPage } from './experiment.ts';
import { layout, type Page } from './layout.ts';
import type { ListContext, Subject } from './lists.ts';
import { readExperiment, readOverview, readProject, readPrompt, type PageData } from './model.ts';
import { overviewPage } from './overview.ts';
import { promptPage } from './prompt.ts';
import { projectPage, unknownProjectPage, type StatusQuery } from './project.ts';

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

type Views = Pick<PageData, 'views'>;

interface MadePage {
  readonly status: 200 | 404;
  readonly body: string;
}

/** Routes of the status page: `/`, `/projects/<id>`, what is below that, and their assets. */
export function createPage(content: WebContent): Hono<ConnectionEnv> {
  const { clock, version } = content;
  const assets = loadAssets();
  /** The pages of the last second, and those that are being made. */
  const pages = new Map<string, { readonly made: Promise<MadePage>; until: number }>();
  const app = new Hono<ConnectionEnv>();

  async function answer(
    context: Context<ConnectionEnv>,
    query: readonly unknown[],
    make: () => Promise<MadePage>,
  ): Promise<Response> {
    const key = JSON.stringify(query);
    const now = clock.monotonic();
    for (const [old, { until }] of pages) if (until <= now) pages.delete(old);
    const { body, status } = await (pages.get(key)?.made ?? keep(key, make()));
    return context.html(body, status, PAGE_HEADERS);
  }

  async function keep(key: string, made: Promise<MadePage>): Promise<MadePage> {
    const page = { made, until: Infinity };
    pages.set(key, page);
    try {
      return await made;
    } catch (error) {
      pages.delete(key);
      throw error;
    } finally {
      page.until = clock.monotonic() + MAX_AGE_MS;
    }
  }

  async function render(page: Page, now: number, root: string): Promise<string> {
    return String(await layout(page, { assets, version, now, root }));
  }

  function listContext(
    now: number,
    root: string,
    { views }: Views,
    subject: Subject = {},
  ): ListContext {
    const { retentionMs } = content;
    return { ...subject, now, retentionMs, promptUrl: content.promptUrl(), root, views };
  }

  function statusOf(context: Context<ConnectionEnv>): StatusQuery {
    const asked = context.req.query('status')?.slice(0, MAX_LENGTH) || undefined;
    const status = PROMPT_STATUSES.find((each) => each === asked?.toUpperCase());
    return { status, unknownStatus: status === undefined ? asked : undefined };
  }

  // The answer to "Poll now" leads back to a page, which has to show the poll.
  app.post(PATHS.poll, async (_context, next) => {
    await next();
    pages.clear();
  });

  app.get('/', (context) => {
    const asked = (name: string) => (context.req.query(name) ?? '').trim().slice(0, MAX_LENGTH);
    const filter = { find: asked('find'), team: asked('team'), state: asked('state') };
    const query = { ...filter, page: pageOf(context.req.query('page')) };
    return answer(context, ['/', query], async () => {
      const now = clock.now();
      const data = await readOverview(content, now);
      const lists = listContext(now, './', data);
      const overview = overviewPage(data, content.monitor(), content.isScheduling(), query, lists);
      return { status: 200, body: await render(overview, now, './') };
    });
  });

  /** Answers with the page of a project or of something in it; `make` resolves to undefined if there is no such project. */
  function answerOf(
    context: Context<ConnectionEnv>,
    query: Subject & { readonly project: string },
    make: (now: number, lists: (data: Views) => ListContext) => Promise<Page | undefined>,
  ): Promise<Response> {
    return answer(context, [query], async () => {
      const now = clock.now();
      const root = (query.experiment ?? query.prompt) === undefined ? '../' : '../../../';
      const made = await make(now, (data) => listContext(now, root, data, query));
      const page = made ?? unknownProjectPage(query.project, root);
      return { status: page.isUnknown ? 404 : 200, body: await render(page, now, root) };
    });
  }

  app.get('/projects/:project', (context) => {
    const query = { ...context.req.param(), ...statusOf(context) };
    return answerOf(context, query, async (now, lists) => {
      const data = await readProject(content, query.project, { status: query.status, now });
      return data && projectPage(data, query, content.isLifecycleEnabled(), lists(data));
    });
  });

  app.get('/projects/:project/experiments/:experiment', (context) => {
    const query = { ...context.req.param(), ...statusOf(context) };
    const { project, experiment, status } = query;
    return answerOf(context, query, async (now, lists) => {
      const data = await readExperiment(content, project, experiment, { status, now });
      return data && experimentPage(data, query, lists(data));
    });
  });

  app.get('/projects/:project/prompts/:prompt', (context) => {
    const query = context.req.param();
    const { project, prompt: promptId } = query;
    return answerOf(context, query, async (now, lists) => {
      const data = await readPrompt(content, { project, promptId }, now);
      return data && promptPage(data, query, lists(data));
    });
  });

  for (const { path, type, body } of Object.values(assets)) {
    app.get(`/${path}`, (context) =>
      context.body(body, 200, { ...ASSET_HEADERS, 'content-type': type }),
    );
  }
  return app;
}

function pageOf(text: string | undefined): number {
  return text !== undefined && /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 1;
}

/** Reads the files that the pages load from the folder beside this file. */
export function loadAssets() {
  return {
    style: asset(new URL('assets/style.css', import.meta.url), 'text/css'),
    script: asset(new URL('assets/live.js', import.meta.url), 'text/javascript'),
    icon: asset(new URL('assets/icon.svg', import.meta.url), 'image/svg+xml'),
  };
}

/** `path` has a digest of the content: what a path leads to never changes. */
function asset(file: URL, type: string) {
  const body = readFileSync(file, 'utf8');
  const digest = createHash('sha256').update(body).digest('hex').slice(0, 16);
  const { name, ext } = parse(file.pathname);
  return { path: `assets/${name}-${digest}${ext}`, type: `${type}; charset=utf-8`, body };
}

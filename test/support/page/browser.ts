import axe, { type AxeResults } from 'axe-core';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { chromiumPath } from './chromium.ts';

/** @throws {Error} if Chromium is not installed */
export async function launchBrowser(): Promise<Browser> {
  if (chromiumPath === undefined) throw new Error('Chromium is not installed');
  // Chromium has no sandbox for root. It opens pages of 127.0.0.1 only.
  return await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] });
}

/** A page, and its errors and requests to other origins. */
export interface WatchedPage extends AsyncDisposable {
  readonly page: Page;
  readonly wrong: readonly string[];
  /** Goes to another page of the same server, which is cheaper than to open one. */
  visit(url: string): Promise<void>;
}

/** Opens `url` in a browser context with these options. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  prepare: (page: Page) => Promise<void> = withoutStream,
): Promise<WatchedPage> {
  const context = await browser.newContext({ timezoneId: 'UTC', ...options });
  // A slow machine must not fail a test.
  context.setDefaultTimeout(240_000);
  const page = await context.newPage();
  const wrong: string[] = [];
  const { origin } = new URL(url);
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') wrong.push(message.text());
  });
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('dialog', (dialog) => wrong.push(`dialog ${dialog.message()}`));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) wrong.push(`request to ${request.url()}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) wrong.push(`${response.status()} of ${response.url()}`);
  });
  await page.addInitScript(`document.addEventListener('securitypolicyviolation', (event) =>
    console.error('violates ' + event.violatedDirective + ': ' + event.blockedURI));`);
  await prepare(page);
  await page.goto(url);
  return {
    page,
    wrong,
    visit: async (next) => {
      await page.goto(next);
    },
    [Symbol.asyncDispose]: () => context.close(),
  };
}

/** Leaves requests for the event stream unanswered. */
async function withoutStream(page: Page): Promise<void> {
  await page.route('**/api/v1/events', () => new Promise(() => {}));
}

/** Returns the violations that axe finds, one line each. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  // Collecting and sending the passed checks takes longer than the checks.
  const violations = (await page.evaluate(
    "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations)",
  )) as AxeResults['violations'];
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary ?? ''}`),
  );
}

/** Returns how much wider than the screen the page is, CSS pixels. */
export async function overflowOf(page: Page): Promise<number> {
  return await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
}

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { experimentPath, promptPath } from '../../src/domain/page-path.ts';
import { cleanUnicode } from '../../src/domain/visible.ts';
import { IN_CI } from '../support/debian-tool.ts';
import { startHere } from '../support/daemon-here.ts';
import { workspace } from '../support/evalwatch.ts';
import {
  axeViolations,
  launchBrowser,
  openPage,
  overflowOf,
  type WatchedPage,
} from '../support/page/browser.ts';
import { chromiumPath } from '../support/page/chromium.ts';
import {
  HOSTILE,
  hostileScenario,
  largeScenario,
  nightScenario,
} from '../support/page/scenarios.ts';
import { HOUR, MINUTE, openPageWorld, SECOND, type PageWorld } from '../support/page/world.ts';
import { startAlpha } from '../support/service.ts';

// In CI a missing browser fails the tests instead of skipping them.
const runs = chromiumPath !== undefined || IN_CI;
const PHONE = { width: 360, height: 740 };
const DESK = { width: 1280, height: 900 };
const SLOW = { timeout: 240_000 };

/** A page, its color scheme and the size of its window. */
type Look = [path: string, colorScheme: 'light' | 'dark', viewport: typeof PHONE];

describe.runIf(runs)('the status page in Chromium', { timeout: 300_000 }, () => {
  let browser: Browser;
  let night: PageWorld;
  beforeAll(async () => {
    browser = await launchBrowser();
    night = await nightScenario();
    Object.assign(night.content, { promptUrl: () => 'https://evals.example.com/{prompt_id}' });
  });
  afterAll(async () => {
    await browser?.close();
    await night?.[Symbol.asyncDispose]();
  });

  describe.each<{ name: string; paths: readonly string[]; looks: Look[] }>([
    {
      name: 'night',
      paths: [
        '/',
        '/projects/checkout-bot',
        '/projects/checkout-bot/experiments/nightly-45',
        '/projects/checkout-bot/prompts/checkout-bot-1007',
        '/projects/search-ranking',
        '/projects/fraud-review',
      ],
      looks: [
        ['/', 'light', PHONE],
        ['/projects/checkout-bot', 'dark', DESK],
        ['/projects/checkout-bot/experiments/nightly-45', 'light', PHONE],
        ['/projects/checkout-bot/experiments/nightly-45', 'dark', DESK],
        ['/projects/checkout-bot/prompts/checkout-bot-1007', 'light', PHONE],
        ['/projects/checkout-bot/prompts/checkout-bot-1007', 'dark', DESK],
      ],
    },
    {
      name: 'hostile',
      paths: [
        '/',
        '/?page=2',
        ...HOSTILE.map((id) => `/projects/${encodeURIComponent(id)}`),
        ...HOSTILE.map((id) => `/${experimentPath(id, cleanUnicode(id))}`),
        ...HOSTILE.filter((id) => cleanUnicode(id) === id).map((id) => `/${promptPath(id, id)}`),
      ],
      looks: [['/', 'dark', PHONE]],
    },
  ])('with the scenario $name', ({ name, paths, looks }) => {
    let hostile: PageWorld | undefined;
    let server: Awaited<ReturnType<PageWorld['serve']>>;
    // One browser page for all paths: each further one is a process.
    let opened: WatchedPage;
    beforeAll(async () => {
      if (name === 'hostile') hostile = await hostileScenario();
      server = await (hostile ?? night).serve();
      opened = await openPage(browser, server.url, { viewport: PHONE, reducedMotion: 'reduce' });
    });
    afterAll(async () => {
      await opened?.[Symbol.asyncDispose]();
      await server?.[Symbol.asyncDispose]();
      await hostile?.[Symbol.asyncDispose]();
    });

    it('has no axe violations', async () => {
      for (const [path, colorScheme, viewport] of looks) {
        await opened.page.emulateMedia({ colorScheme });
        await opened.page.setViewportSize(viewport);
        await opened.visit(server.url + path);
        expect({ path, violations: await axeViolations(opened.page) }).toEqual({
          path,
          violations: [],
        });
      }
    });

    it('fits the width of a phone on every page without errors, also unfolded', async () => {
      await opened.page.setViewportSize(PHONE);
      for (const path of paths) {
        await opened.visit(server.url + path);
        await opened.page.evaluate(
          'for (const each of document.querySelectorAll("details")) each.open = true',
        );

        expect({
          path,
          overflow: await overflowOf(opened.page),
          wrong: opened.wrong,
          hacked: await opened.page.evaluate('globalThis.hacked'),
        }).toEqual({ path, overflow: 0, wrong: [], hacked: undefined });
      }
    });

    it('shows the same without scripts', async () => {
      const scriptless = { viewport: DESK, javaScriptEnabled: false };
      await using plain = await openPage(browser, server.url, scriptless);
      await opened.page.setViewportSize(DESK);
      for (const path of paths.slice(0, 3)) {
        await plain.visit(server.url + path);
        await opened.visit(server.url + path);

        expect(await plain.page.locator('main').innerText()).toBe(
          await opened.page.locator('main').innerText(),
        );
        expect(plain.wrong).toEqual([]);
      }
    });

    it('links from the overview to projects and back', async () => {
      await using plain = await openPage(browser, server.url, { javaScriptEnabled: false });
      const { page } = plain;
      const links = page.locator('h3 a');
      expect(await links.count()).toBeGreaterThan(1);
      for (const index of [0, 1]) {
        await links.nth(index).click();
        expect(new URL(page.url()).pathname).toMatch(/^\/projects\/[^/]+$/);
        expect(await page.locator('#failures').innerText()).toBe('Newest failures');
        await page.getByRole('link', { name: 'All projects' }).click();
        expect(new URL(page.url()).pathname).toBe('/');
      }
      expect(plain.wrong).toEqual([]);
    });
  });

  // Runs after the tests above, because it changes the night.
  describe('with scripts', () => {
    let server: Awaited<ReturnType<PageWorld['serve']>>;
    beforeAll(async () => {
      server = await night.serve();
    });
    afterAll(() => server?.[Symbol.asyncDispose]());

    it('updates after an event, and keeps focus, scroll position and unfolded details', async () => {
      const stream = stubStream();
      await using opened = await openPage(browser, server.url, { viewport: PHONE }, stream.install);
      const { page } = opened;
      await stream.asked();
      const fold = page.locator('.failures details').first();
      const link = page.locator('.failures a').last();
      await fold.evaluate((each: { open: boolean }) => {
        each.open = true;
      });
      await link.focus();
      const focused = await page.evaluate('document.activeElement.href');
      await page.evaluate('window.scrollTo(0, 1800)');
      const asOf = await page.locator('.as-of time').innerText();

      night.clock.advance(5 * SECOND);
      await night.see('translation-quality', { fresh: 'RUNNING' });
      await stream.send('transition');

      await expect.poll(() => page.locator('.as-of time').innerText(), SLOW).not.toBe(asOf);
      expect(await page.evaluate('document.activeElement.href')).toBe(focused);
      expect(await page.evaluate('window.scrollY')).toBe(1800);
      expect(await page.locator('.failures details[open]').count()).toBe(1);
      expect(opened.wrong).toEqual([]);
    });

    it('updates the page of an experiment when one has finished', async () => {
      const stream = stubStream();
      const url = `${server.url}/projects/checkout-bot/experiments/nightly-45`;
      await using opened = await openPage(browser, url, { viewport: PHONE }, async (page) => {
        await page.clock.install();
        await page.clock.pauseAt(Date.now() + SECOND);
        await stream.install(page);
      });
      const { page } = opened;
      await stream.asked();
      const asOf = page.locator('.as-of time');
      const before = await asOf.innerText();

      night.clock.advance(5 * SECOND);
      await stream.send('experiment');

      // The page listens again, so it has the event. After 30 seconds it would be fetched anyway.
      await stream.asked();
      await page.clock.runFor(2 * SECOND);
      await expect.poll(() => asOf.innerText(), SLOW).not.toBe(before);
      expect(opened.wrong).toEqual([]);
    });

    it('announces a changed verdict to screen readers, and nothing before', async () => {
      const stream = stubStream();
      await using opened = await openPage(browser, server.url, {}, stream.install);
      const { page } = opened;
      await stream.asked();
      const spoken = page.getByRole('status');
      expect(await spoken.innerText()).toBe('');

      night.clock.advance(5 * SECOND);
      await night.see('support-triage', { fresh: 'FAILED' });
      await stream.send('failure');

      await expect
        .poll(() => spoken.innerText(), SLOW)
        .toMatch(
          /^2 of 6 projects not monitored. \d+ failures in the last 24 hours. Stuck prompts in 2 projects.$/,
        );
      expect(await page.title()).toMatch(/^2 of 6 projects not monitored · \d+ failures/);
    });

    it('refreshes every 30 seconds if there is no event stream, with the same projects', async () => {
      const url = `${server.url}/?state=down#projects`;
      await using opened = await openPage(browser, url, {}, async (page) => {
        await page.clock.install();
        await page.route('**/api/v1/events', (route) => route.fulfill({ status: 404, body: '' }));
      });
      const { page } = opened;
      const asOf = page.locator('.as-of time');
      const before = await asOf.innerText();
      await expect.poll(() => page.locator('#live').innerText(), SLOW).toBe('Updated every 30 s');

      night.clock.advance(MINUTE);
      await page.clock.fastForward(31 * SECOND);

      await expect.poll(() => asOf.innerText(), SLOW).not.toBe(before);
      expect(await page.locator('.projects > .down').count()).toBe(2);
      expect(await page.locator('.projects > *').count()).toBe(2);
    });

    it('keeps its content and says that evalwatch does not answer, until it answers again', async () => {
      await using opened = await openPage(browser, server.url, {}, async (page) => {
        await page.clock.install();
        await page.route('**/api/v1/events', (route) => route.abort());
      });
      const { page } = opened;
      const live = page.locator('#live');
      const main = await page.locator('main').innerText();

      await page.route(`${server.url}/`, (route) => route.abort());
      await page.clock.fastForward(31 * SECOND);
      await expect
        .poll(() => live.innerText(), SLOW)
        .toMatch(/No answer from evalwatch since .* this page is out of date/);
      expect(await page.locator('main').innerText()).toBe(main);

      await page.unroute(`${server.url}/`);
      await page.clock.fastForward(31 * SECOND);
      await expect.poll(() => live.innerText(), SLOW).toBe('Updated every 30 s');
    });

    it('keeps a text selection, and updates once nothing is selected', async () => {
      await using opened = await openPage(browser, server.url, {}, async (page) => {
        await page.clock.install();
        await page.route('**/api/v1/events', (route) => route.fulfill({ status: 404, body: '' }));
      });
      const { page } = opened;
      const asOf = page.locator('.as-of time');
      const live = page.locator('#live');
      const before = await asOf.innerText();
      let fetches = 0;
      page.on('request', (request) => {
        if (request.url() === `${server.url}/`) fetches += 1;
      });
      await page.locator('.error-id').first().selectText();
      const marked = await page.evaluate('getSelection().toString()');
      expect(marked).not.toBe('');
      night.clock.advance(MINUTE);

      await page.clock.fastForward(31 * SECOND);
      expect(await page.evaluate('getSelection().toString()')).toBe(marked);
      expect(await live.innerText()).toBe('Waits while you type or select');
      await page.evaluate('getSelection().empty()');
      await page.clock.fastForward(31 * SECOND);

      await expect.poll(() => asOf.innerText(), SLOW).not.toBe(before);
      expect(fetches).toBe(1);
      await expect.poll(() => live.innerText(), SLOW).toBe('Updated every 30 s');
    });

    it('has the failures before the health of evalwatch on a phone, and after it on a desk', async () => {
      await using opened = await openPage(browser, server.url, { viewport: PHONE });
      const { page } = opened;
      const isHealthFirst = () =>
        page.evaluate<boolean>(
          'monitor.getBoundingClientRect().top < failures.getBoundingClientRect().top',
        );
      expect(await isHealthFirst()).toBe(false);
      await page.setViewportSize(DESK);
      expect(await isHealthFirst()).toBe(true);
    });

    it('can be used by keyboard from the skip link to the end, with a visible focus', async () => {
      await using opened = await openPage(browser, server.url, { viewport: PHONE });
      const { page } = opened;
      await page.keyboard.press('Tab');
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to content');
      await page.keyboard.press('Enter');
      expect(await page.evaluate('document.activeElement.id')).toBe('main');

      const expected = await page
        .locator('main :is(a, summary, input, select, button), footer a')
        .count();
      const stops: string[] = [];
      for (let stop = 0; stop < expected; stop += 1) {
        await page.keyboard.press('Tab');
        stops.push(await page.evaluate(DESCRIBE_FOCUS));
      }

      expect(stops.filter((stop) => stop.startsWith('unseen'))).toEqual([]);
      expect(stops.at(-1)).toContain('Readiness');
      await page.locator('summary').first().focus();
      await page.keyboard.press('Enter');
      expect(await page.locator('details').first().getAttribute('open')).not.toBeNull();
    });
  });

  describe('times', () => {
    const BERLIN = { timezoneId: 'Europe/Berlin', viewport: PHONE };
    let world: PageWorld;
    let server: Awaited<ReturnType<PageWorld['serve']>>;
    beforeAll(async () => {
      // In this night, clocks in Berlin show 02:30 twice.
      world = await openPageWorld(Date.parse('2026-10-25T00:00Z'));
      await world.configure(['alpha']);
      await world.see('alpha', { quiet: 'PENDING' });
      world.clock.advance(30 * MINUTE);
      await world.see('alpha', { quiet: 'RUNNING' });
      world.clock.advance(HOUR);
      await world.see('alpha', { quiet: 'COMPLETED' });
      world.clock.advance(HOUR);
      server = await world.serve();
    });
    afterAll(async () => {
      await server?.[Symbol.asyncDispose]();
      await world?.[Symbol.asyncDispose]();
    });

    it('are in the zone of the reader, with the offset, and in UTC in their tooltips', async () => {
      await using opened = await openPage(browser, `${server.url}/projects/alpha`, BERLIN);
      const moves = opened.page.locator('#transitions ~ table time');
      expect(await moves.allTextContents()).toEqual([
        '2026-10-25 02:30:00 UTC+1',
        '2026-10-25 02:30:00 UTC+2',
      ]);
      expect(await moves.first().getAttribute('title')).toBe('2026-10-25 01:30:00 UTC');
      const axis = opened.page.locator('.plot time').first();
      expect(await axis.textContent()).toBe('04:45 UTC+2');
      expect(await axis.getAttribute('title')).toBe('02:45 UTC');
      expect(opened.wrong).toEqual([]);
    });

    it('are in UTC once the reader chose it, also after a refresh and on the next page', async () => {
      const stream = stubStream();
      await using opened = await openPage(browser, server.url, BERLIN, stream.install);
      const { page } = opened;
      const asOf = page.locator('.as-of time');
      const choice = page.locator('header').getByRole('button');
      expect(await choice.innerText()).toBe('Times: Europe/Berlin');
      expect((await choice.boundingBox())?.height).toBeGreaterThanOrEqual(24);
      await choice.focus();
      await page.keyboard.press('Tab');
      await page.keyboard.press('Shift+Tab');
      expect(await page.evaluate(DESCRIBE_FOCUS)).toBe('seen button Times: Europe/Berlin');

      await page.keyboard.press('Enter');

      expect(await page.evaluate(DESCRIBE_FOCUS)).toBe('seen button Times: UTC');
      const before = await asOf.innerText();
      expect(before).toMatch(/:00 UTC$/);
      expect(await asOf.getAttribute('title')).toMatch(/:00 UTC\+1$/);
      world.clock.advance(MINUTE);
      await stream.send('transition');
      await expect.poll(() => asOf.innerText(), SLOW).not.toBe(before);
      expect(await asOf.getAttribute('title')).toMatch(/:00 UTC\+1$/);

      await opened.visit(`${server.url}/projects/alpha`);
      expect(await choice.innerText()).toBe('Times: UTC');
      expect(await asOf.innerText()).toMatch(/:00 UTC$/);
      await choice.click();
      await page.reload();
      expect(await choice.innerText()).toBe('Times: Europe/Berlin');
      expect(opened.wrong).toEqual([]);
    });

    it('are local at once when the page is refreshed, which is no news for screen readers', async () => {
      const stream = stubStream();
      await using opened = await openPage(browser, server.url, BERLIN, stream.install);
      const { page } = opened;
      await stream.asked();
      await page.evaluate(`globalThis.shown = [];
        new MutationObserver(() => shown.push(...Array.from(main.querySelectorAll('time'), (each) => each.textContent)))
          .observe(main, { childList: true })`);
      world.clock.advance(MINUTE);
      await stream.send('transition');

      const shown = () => page.evaluate<string[]>('shown');
      await expect.poll(shown, SLOW).not.toEqual([]);
      expect((await shown()).filter((text) => !/ UTC\+[12]$/.test(text))).toEqual([]);
      expect(await page.getByRole('status').innerText()).toBe('');
    });

    it('can be switched where the browser refuses to store anything', async () => {
      await using opened = await openPage(browser, server.url, BERLIN, async (page) => {
        await page.route('**/api/v1/events', () => new Promise(() => {}));
        await page.addInitScript(
          `Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('refused', 'SecurityError'); } })`,
        );
      });
      const { page } = opened;
      await page.getByRole('button', { name: 'Times: Europe/Berlin' }).click();
      expect(await page.locator('.as-of time').innerText()).toMatch(/ UTC$/);
      expect(await page.locator('#live').innerText()).toBe('Updated every 30 s');
      expect(opened.wrong).toEqual([]);
    });

    it('are in UTC without scripts, and there is nothing to switch', async () => {
      const scriptless = { ...BERLIN, javaScriptEnabled: false };
      await using opened = await openPage(browser, server.url, scriptless);
      const texts = await opened.page.locator('main time').allTextContents();
      expect(texts.filter((text) => !text.endsWith(' UTC'))).toEqual([]);
      expect(await opened.page.locator('header button').count()).toBe(0);
    });

    it('fit a phone in a zone with a long name and offset, without axe violations', async () => {
      await using full = await night.serve();
      const far = { timezoneId: 'Australia/Broken_Hill', viewport: PHONE };
      await using opened = await openPage(browser, full.url, far);
      const { page } = opened;
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await axeViolations(page)).toEqual([]);
      }
      for (const path of ['/', '/projects/checkout-bot', '/projects/fraud-review']) {
        await opened.visit(full.url + path);
        expect({ path, overflow: await overflowOf(page) }).toEqual({ path, overflow: 0 });
      }
    });
  });

  it('names the team whose projects it lists, also after the way back', async () => {
    await using world = await openPageWorld();
    await world.configure(['alpha', 'beta']);
    for (const [id, team] of Object.entries({ alpha: 'search', beta: 'pay' })) {
      world.change(id, { team });
    }
    await using server = await world.serve();
    await using opened = await openPage(browser, server.url, { javaScriptEnabled: false });
    const { page } = opened;
    await page.selectOption('#team', 'search');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.waitForURL('**/?find=&team=search#projects');
    expect(await page.locator('.projects > *').count()).toBe(1);

    await page.goBack();

    expect(await page.locator('.projects > *').count()).toBe(2);
    expect(await page.inputValue('#team')).toBe('');
  });

  it('serves no page of 500 kB or more', async () => {
    await using world = await largeScenario();
    await using server = await world.serve();
    for (const path of [
      '/',
      '/?page=13',
      '/?find=99',
      '/projects/crowd?status=PENDING',
      '/projects/crowd',
      `/projects/crowd/experiments/4711%20${'x'.repeat(500)}`,
    ]) {
      const answer = await fetch(server.url + path);
      const { byteLength } = await answer.arrayBuffer();
      expect({ path, status: answer.status, isLarge: byteLength >= 500_000 }).toEqual({
        path,
        status: 200,
        isLarge: false,
      });
    }
  });

  it('shows a new failure of a running daemon without a reload', async () => {
    await using service = await startAlpha();
    service.set({ quiet: 'RUNNING' });
    await using place = await workspace(service.url);
    await using daemon = await startHere(place, { speed: 1 });
    const url = await daemon.url();
    await daemon.line('project.baseline');
    await using opened = await openPage(browser, url, { viewport: PHONE }, () => Promise.resolve());
    const { page } = opened;

    service.set({ quiet: 'FAILED' });

    await expect
      .poll(
        () =>
          page
            .locator('.failures')
            .innerText()
            .catch(() => ''),
        SLOW,
      )
      .toContain('what went wrong with quiet');
  });

  it('polls a project with the "Poll now" button, and returns to the project page', async () => {
    await using service = await startAlpha();
    service.set({ quiet: 'RUNNING' });
    const yearly = { schedule: '0 0 1 1 *', web: { enable_lifecycle: true } };
    await using place = await workspace(service.url, yearly);
    await using daemon = await startHere(place, { speed: 1 });
    const url = `${await daemon.url()}/projects/alpha`;
    await daemon.line('project.baseline');
    await using opened = await openPage(browser, url, { viewport: PHONE }, () => Promise.resolve());
    const { page } = opened;
    service.set({ quiet: 'COMPLETED' });

    await page.getByRole('button', { name: 'Poll now' }).click();

    await daemon.line('prompt.transition', { to: 'COMPLETED' });
    expect(page.url()).toBe(url);
    expect(await page.locator('#transitions ~ *').first().innerText()).toContain('COMPLETED');
  });
});

/** Describes the focused element, as `seen` if its outline shows and it is on the screen. */
const DESCRIBE_FOCUS = `(() => {
  const element = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  const { top, bottom } = element.getBoundingClientRect();
  const seen = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && bottom > 0 && top < innerHeight;
  return (seen ? 'seen ' : 'unseen ') + element.localName + ' ' + element.textContent;
})()`;

/** Stubs the event stream with events that a test sends. */
function stubStream() {
  let asked = Promise.withResolvers<void>();
  let told = Promise.withResolvers<string>();
  return {
    install: async (page: Page) => {
      await page.route('**/api/v1/events', async (route) => {
        asked.resolve();
        const type = await told.promise;
        told = Promise.withResolvers();
        await route
          .fulfill({ contentType: 'text/event-stream', body: `event: ${type}\ndata: {}\n\n` })
          .catch(() => {});
      });
    },
    /** Waits until the page listens. */
    asked: () => asked.promise,
    send: async (type: string) => {
      await asked.promise;
      asked = Promise.withResolvers();
      told.resolve(type);
    },
  };
}

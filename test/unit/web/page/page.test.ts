import { describe, expect, it, vi } from 'vitest';
import { StoreError } from '../../../../src/monitor/errors.ts';
import { createPage } from '../../../../src/web/page/routes.ts';
import { storeWith } from '../../../support/store-with.ts';
import { HOUR, MINUTE, NIGHT, openPageWorld, SECOND } from '../../../support/page/world.ts';

async function setUp() {
  const world = await openPageWorld(NIGHT - 3 * HOUR);
  await world.configure(['alpha', 'beta', 'gamma']);
  return Object.assign(world, {
    /** Polls every project, all of which have a prompt that runs. */
    seeAll: async () => {
      for (const project of ['alpha', 'beta', 'gamma']) await world.see(project, { a: 'RUNNING' });
    },
  });
}

const broken = () => Promise.reject(new StoreError('io', 'page 7'));
/** Returns records `p0`, `p1` … that all have this status. */
const all = (count: number, status: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, status]));

/** Sorts words by their first occurrence in the text. */
function order(text: string, words: readonly string[]): readonly string[] {
  return words.toSorted((a, b) => text.indexOf(a) - text.indexOf(b));
}

describe('status page verdict', () => {
  it('is healthy with 0 failures when every project is monitored', async () => {
    await using world = await setUp();
    await world.seeAll();

    const { text, html } = await world.read();

    expect(text).toContain('evalwatch is healthy and monitors every project');
    expect(html).toContain(
      '<title>evalwatch is healthy and monitors every project · 0 failures · evalwatch</title>',
    );
    expect(text).toContain('3 projects watched');
  });

  it('counts unmonitored projects and the failures of the last 24 hours', async () => {
    await using world = await setUp();
    await world.see('alpha', { a: 'RUNNING', b: 'RUNNING' });
    await world.see('alpha', { a: 'FAILED', b: 'RUNNING' });
    await world.see('beta', { a: 'RUNNING' });
    await world.fail('gamma', 'tls', 4);

    const { text } = await world.read();

    expect(text).toContain('1 of 3 projects not monitored');
    expect(text).toContain('1 failure in the last 24 hours, the newest now in alpha.');
  });

  it('counts all failures of a poll, also beyond the moves that are read, for 24 hours', async () => {
    await using world = await setUp();
    await world.see('alpha', all(31, 'RUNNING'));
    await world.see('alpha', all(31, 'FAILED'));
    const moves: typeof world.store.moves = (query) => world.store.moves({ ...query, limit: 10 });
    const read = async (path: string) =>
      (await world.read(path, { store: storeWith(world.store, { moves }) })).text;
    const words = 'failures in the last 24 hours';

    expect(await read('/')).toContain(`31 ${words}, the newest now in alpha.`);
    expect(await read('/projects/alpha')).toContain(`31 ${words}`);
    expect(await read('/projects/beta')).toContain(`0 ${words}`);
    world.clock.advance(25 * HOUR);
    expect(await read('/')).toContain(`0 ${words}`);
  });

  it('says how many prompts were FAILED before the first poll, which counts no failure', async () => {
    await using world = await setUp();
    await world.see('alpha', { first: 'FAILED', other: 'RUNNING' });
    await world.see('alpha', { first: 'FAILED', other: 'FAILED' });
    const words = '1 FAILED since before the first poll, not counted as a failure';

    for (const path of ['/', '/projects/alpha']) {
      const { text } = await world.read(path);
      expect(text).toContain('1 failure in the last 24 hours');
      expect(text).toContain(words);
      expect(text).not.toContain(`at least ${words}`);
    }
    await world.see('alpha', { first: 'FAILED', other: 'RUNNING', third: 'FAILED' });
    await world.see('alpha', { first: 'FAILED', other: 'RUNNING', third: 'FAILED' });
    expect((await world.read()).text).not.toContain('before the first poll');

    await world.see('beta', { a: 'FAILED', b: 'FAILED', c: 'RUNNING' });
    await world.see('beta', { a: 'FAILED', b: 'FAILED', c: 'FAILED' });
    await world.see('beta', { a: 'FAILED', b: 'FAILED', c: 'RUNNING' });
    expect((await world.read()).text).toContain(`at least ${words}`);
  });

  it('shows "at least" when the count is capped, and a retention shorter than 24 hours', async () => {
    await using world = await setUp();
    const failureCounts = () => Promise.resolve([{ project: 'beta', count: 100_000 }]);
    const change = { store: storeWith(world.store, { failureCounts }), retentionMs: 6 * HOUR };
    const { text, html } = await world.read('/', change);
    expect(text).toContain('at least 100,000 failures in the last 6 h');
    expect(html).toContain(' · at least 100,000 failures · evalwatch</title>');
  });

  it.each([
    [
      {
        type: 'config.reload_failed',
        reasons: ['a.yaml:3:1: unknown key "polll"'],
        isRepeated: false,
      } as const,
      ['the last reload failed', 'a.yaml:3:1: unknown key &quot;polll&quot;'],
      'with a warning',
    ],
    [
      {
        type: 'config.reloaded',
        projects: 0,
        changes: { added: [], removed: [], changed: [], omitted: undefined, sections: [] },
      } as const,
      ['reloaded now'],
      'is healthy',
    ],
  ])('shows the result of the last configuration reload: %j', async (event, words, verdict) => {
    await using world = await setUp();
    await world.seeAll();
    world.monitor.observe(event);

    const { text } = await world.read();

    for (const each of [...words, verdict]) expect(text).toContain(each);
  });
});

describe('status page on store errors', () => {
  const error = new Error('disk full');

  it('shows a failed write with its reason and its age', async () => {
    await using world = await setUp();
    world.clock.advance(MINUTE);
    world.monitor.observe({ type: 'store.commit_failed', reason: 'full', error });
    world.clock.advance(MINUTE);

    const { text } = await world.read();

    expect(text).toContain('Store failing');
    expect(text).toMatch(/Store: cannot be written: the disk is full; 1 min ago/);
  });

  it('warns for one hour after writes work again', async () => {
    await using world = await setUp();
    await world.seeAll();
    world.monitor.observe({ type: 'store.commit_failed', reason: 'busy', error });
    world.clock.advance(SECOND);
    await world.see('alpha', { a: 'RUNNING' });

    expect((await world.read()).text).toContain('works again; a write failed 1 s ago');
    world.clock.advance(HOUR);
    expect((await world.read()).text).not.toContain('works again');
  });

  it('shows the state in memory, without failure counts, while the store cannot be read', async () => {
    await using world = await setUp();
    await world.fail('beta', 'auth', 2);
    const store = storeWith(world.store, { projects: broken });

    const { status, text, html } = await world.read('/', { store, snapshot: broken });
    const project = await world.read('/projects/beta', { store, snapshot: broken });

    expect(status).toBe(200);
    expect(text).toContain('Store failing, 1 of 3 projects not monitored');
    expect(text).toContain('the service refuses the API key');
    expect(text + project.text).not.toContain('page 7');
    expect(project.text).toContain('The store cannot be read');
    // The number of failures is unknown.
    expect(html + project.html).not.toMatch(/\d failures?\b/);
  });

  it('shows a project of another worker as unknown if its state was never read', async () => {
    await using world = await setUp();
    world.change('beta', { isHealthKnown: false });
    const store = storeWith(world.store, { projects: broken });

    const { text } = await world.read('/', { store, snapshot: broken });
    const project = await world.read('/projects/beta', { store, snapshot: broken });

    expect(text).toContain('1 in an unknown state');
    expect(project.text).toContain('Unknown');
    expect(project.text).toContain('another worker polls it, and the store cannot be read');
    expect(project.text).not.toContain('Not polled yet');
  });
});

describe('status page on scheduler problems', () => {
  it('counts overdue projects, shows the longest delay and lists them first', async () => {
    await using world = await setUp();
    await world.seeAll();
    world.change('beta', { nextPollAt: world.clock.now() - 61 * SECOND });

    const { text } = await world.read();

    expect(text).toContain('Scheduler failing, 1 of 3 projects not monitored');
    expect(text).toContain('1 project should have been polled, the first 1 min ago');
    expect(order(text, ['alpha', 'beta'])).toEqual(['beta', 'alpha']);
  });

  it('counts missed and skipped runs', async () => {
    await using world = await setUp();
    world.monitor.observe({ type: 'scheduler.missed', project: 'alpha', count: 3 });
    world.monitor.observe({ type: 'scheduler.overlapped', project: 'alpha' });

    expect((await world.read()).text).toContain('3 runs missed, 1 skipped');
  });

  it('shows that the daemon is starting or stopping while it is not ready', async () => {
    await using world = await setUp();

    expect((await world.read('/', { isScheduling: () => false })).text).toContain(
      'starting or stopping',
    );
  });
});

describe('receivers on the status page', () => {
  const works = { name: 'pipeline', failing: undefined, waits: 9 * MINUTE };

  interface State {
    readonly name: string;
    readonly failing: { readonly since: number; readonly reason: string } | undefined;
    readonly waits?: number;
  }

  it.each<readonly [readonly State[], string | undefined]>([
    [[], undefined],
    [[works], '1 work'],
    [
      [works, { name: 'chat', failing: undefined, waits: 11 * MINUTE }],
      '1 work, what is due for chat was not sent for 11 min',
    ],
    [
      [works, { name: 'chat', failing: { since: 12 * MINUTE, reason: '403 <b>invalid</b>' } }],
      '1 work, chat has failed for 12 min: 403 &lt;b&gt;invalid&lt;/b&gt;',
    ],
    [
      [
        { name: 'chat', failing: { since: HOUR, reason: 'no answer in 10 s' } },
        { name: 'mail', failing: { since: MINUTE, reason: '535' } },
      ],
      '0 work, chat has failed for 1 h: no answer in 10 s, mail has failed for 1 min: 535',
    ],
  ])('have a check if there are any: %j', async (states, words) => {
    await using world = await setUp();
    await world.seeAll();
    const now = NIGHT - 3 * HOUR;
    const receivers = states.map(({ name, failing, waits = 0 }) => {
      const oldestDueAt = now - waits;
      return { name, failing: failing && { ...failing, since: now - failing.since }, oldestDueAt };
    });
    const monitor = () => ({ ...world.monitor.state(), receivers });

    const { text } = await world.read('/', { monitor });

    expect(text.includes('Receivers')).toBe(words !== undefined);
    expect(text).toContain(words === undefined ? 'Failure reasons' : `Receivers: ${words}`);
    expect(text.includes('evalwatch is healthy')).toBe(words?.includes(',') !== true);
  });
});

describe('projects on the status page', () => {
  it('are sorted: longest unmonitored first, then not yet polled, with failures, healthy', async () => {
    await using world = await setUp();
    const ids = ['a-calm', 'b-failing', 'c-blind', 'd-longer-blind', 'e-new', 'f-never-up'];
    await world.configure(ids);
    for (const id of ids.slice(0, 4)) await world.see(id, { x: 'RUNNING' });
    world.clock.advance(HOUR);
    await world.see('c-blind', { x: 'RUNNING' });
    await world.see('b-failing', { x: 'FAILED' });
    for (const id of ['c-blind', 'd-longer-blind', 'f-never-up']) await world.fail(id, 'network');
    for (const id of ids) world.change(id, { nextPollAt: world.clock.now() + SECOND });

    const { text } = await world.read('/');

    const cards = text.slice(text.indexOf('6 not monitored'));
    expect(order(cards, ids).join(' ')).toBe(
      'f-never-up d-longer-blind c-blind e-new b-failing a-calm',
    );
  });

  it('show why they are down, since when, and how many polls failed in a row', async () => {
    await using world = await setUp();
    await world.see('alpha', { a: 'RUNNING' });
    world.clock.advance(2 * HOUR);
    await world.fail('alpha', 'rate_limited', 12);

    const { text } = await world.read('/projects/alpha');

    expect(text).toContain('Down: the service asks for fewer requests (429). rate_limited');
    expect(text).toContain(
      '12 failed polls in a row. No successful poll for 2 h, since 2026-11-21 00:12:40 UTC.',
    );
  });

  it('show the failed request and the escaped, truncated error response until a poll succeeds', async () => {
    await using world = await setUp();
    const url = 'https://evaluation.example.com/v2/v2/projects/alpha/prompts/';
    const detail = `<b>No</b> \u202esuch page ${'x'.repeat(400)}`;
    const message = 'the service answered 404';
    await world.fail('alpha', 'not_found', 1, { message, url, statusCode: 404, detail });

    const { text, html } = await world.read('/projects/alpha');

    expect(text.replaceAll(' ', '')).toContain(
      `Last error ${message} Request ${url} Status 404 Answer`.replaceAll(' ', ''),
    );
    expect(html).toContain('&lt;b&gt;No&lt;/b&gt;');
    expect(html).not.toContain('\u202e');
    expect(html).not.toContain('x'.repeat(300));

    await world.see('alpha', { a: 'RUNNING' });
    expect((await world.read('/projects/alpha')).text).not.toContain('Last error');
  });

  it('can be searched by a part of their id, ignoring case, and are split into pages', async () => {
    await using world = await setUp();
    await world.configure(Array.from({ length: 60 }, (_, index) => `project-${index}`));

    const last = await world.read('/?page=3');
    const beyond = await world.read('/?page=99');
    const found = await world.read('/?find=+PROJECT-5%09');
    const none = await world.read('/?find=%22%3E%3Cb%3E');

    expect(last.text).toContain('Page 3 of 3, 60 projects');
    expect(beyond.text).toContain('Page 3 of 3');
    expect(found.html.match(/<h3>/g)).toHaveLength(11);
    expect(none.text).toContain('No project matches.');
    expect(none.html).not.toContain('"><b>');
  });
});

describe('the projects of the overview', () => {
  /** Configures 60 projects, every second one of the team search, of which the first 30 are down. */
  async function setUpMany() {
    const world = await setUp();
    const ids = Array.from({ length: 60 }, (_, index) => `project-${index}`);
    await world.configure(ids);
    for (const [index, id] of ids.entries()) {
      world.change(id, { team: index % 2 === 0 ? 'search' : 'R&D' });
      if (index < 30) await world.fail(id, 'timeout');
    }
    world.change('project-59', { pause: { until: undefined, polls: 'stop' } });
    return world;
  }
  const shownIn = (html: string) => new Set(html.match(/(?<=<h3><a href="\.\/projects\/)[^"]*/g));
  const linksIn = (html: string) =>
    Array.from(
      html.matchAll(/<a [^>]*href="(\?[^"]*#projects)"[^>]*>([^<]*)</g),
      ([, to, words]) => [words?.trim(), to?.replaceAll('&amp;', '&')],
    );

  it('are counted by state, and restricted to a team, a state and a part of the id', async () => {
    await using world = await setUpMany();

    const every = await world.read();
    const down = await world.read('/?state=DOWN&team=R%26D&find=project-1');

    expect(linksIn(every.html).map(([words]) => words)).toEqual([
      'All 60',
      'Down 30',
      'Not polled yet 29',
      'Paused 1',
      'Next',
    ]);
    expect(every.text).toMatch(/All teams R&amp;D \(30\) search \(30\)/);
    expect(every.html.match(/<h3>/g)).toHaveLength(24);
    expect(shownIn(down.html)).toEqual(
      new Set([1, 11, 13, 15, 17, 19].map((number) => `project-${number}`)),
    );
    expect(linksIn(down.html).map(([words]) => words)).toEqual(['All 6', 'Down 6']);
    expect((await world.read('/?find=project-59&state=down')).text).toContain(
      'No project matches.',
    );
  });

  it('keep what they are restricted to in every link and in the form', async () => {
    await using world = await setUpMany();

    const { html } = await world.read('/?find=PROJECT&team=search&state=new');
    const last = await world.read('/?find=o&page=2');

    const asked = 'find=PROJECT&team=search';
    expect(linksIn(html)).toEqual([
      ['All 30', `?${asked}#projects`],
      ['Down 15', `?${asked}&state=down#projects`],
      ['Not polled yet 15', `?${asked}&state=new#projects`],
    ]);
    expect(html).toMatch(/aria-current="true"\s*>Not polled yet 15/);
    expect(html).toMatch(/name="find" type="search" value="PROJECT"/);
    expect(html).toMatch(/<option value="search" selected>/);
    expect(html).toContain('<input type="hidden" name="state" value="new" />');
    expect(linksIn(last.html).slice(-2)).toEqual([
      ['Previous', '?find=o#projects'],
      ['Next', '?find=o&page=3#projects'],
    ]);
  });

  it('are all listed, with a sentence, for a team or a state that does not exist', async () => {
    await using world = await setUpMany();

    const { text, html } = await world.read('/?team=%3Cb%3E&state=dwn');

    expect(text).toContain('There is no team &lt;b&gt;, so projects of all teams are listed.');
    expect(text).toContain(
      'There is no state dwn, so projects in all states are listed. The states are down, late, new, unknown, up, paused.',
    );
    expect(text).toContain('Page 1 of 3, 60 projects');
    expect(html).not.toContain('selected');
  });

  it('are kept apart by what they are restricted to', async () => {
    await using world = await setUpMany();
    const page = createPage(world.content);
    const ask = async (path: string) => shownIn(await (await page.request(path)).text());

    const [down, paused] = [await ask('/?state=down'), await ask('/?state=paused')];

    expect(down).not.toContain('project-59');
    expect(paused).toEqual(new Set(['project-59']));
    expect(await ask('/?team=R%26D')).not.toEqual(await ask('/?team=search'));
  });

  it('say that their next poll is by the idle schedule', async () => {
    await using world = await setUp();
    world.change('alpha', { isIdle: true });
    for (const path of ['/', '/projects/alpha']) {
      expect((await world.read(path)).text).toMatch(
        /Next poll in 20 s 2026-11-21 00:13:00 UTC \(idle schedule\)/,
      );
    }
    expect((await world.read('/projects/beta')).text).not.toContain('idle');
  });
});

describe('longest waiting prompts on the status page', () => {
  it('are the ten oldest unfinished prompts of 30 projects', async () => {
    await using world = await setUp();
    const ids = Array.from({ length: 30 }, (_, index) => `project-${index}`);
    await world.configure(ids);
    for (const [index, id] of ids.entries()) {
      world.clock.advance(MINUTE);
      const first = {
        [`first-${index}`]: index % 3 === 0 ? 'PENDING' : 'RUNNING',
        done: 'COMPLETED',
      };
      await world.see(id, first);
      await world.see(id, { ...first, [`second-${index}`]: 'RUNNING' });
    }
    const rows = await world.store.statuses({ order: 'oldest' });
    const longest = rows.filter(({ status }) => status !== 'COMPLETED').slice(0, 10);

    const { text } = await world.read();

    const waiting = text.slice(text.indexOf('Prompts that are PENDING'), text.indexOf('Recent'));
    const shown = new Set(waiting.match(/(?:first|second)-\d+(?= )/g));
    expect(shown).toEqual(new Set(longest.map(({ promptId }) => promptId)));
  });
});

describe('expected waiting times on the status page', () => {
  const learned = { limitMs: HOUR, source: 'learned', typicalMs: 20 * MINUTE } as const;
  const configured = { limitMs: 90 * SECOND, source: 'configured', typicalMs: undefined } as const;
  const off = { limitMs: undefined, source: 'off', typicalMs: undefined } as const;

  /** Lets a prompt of alpha be RUNNING for 3 h 40 min, and one of beta for a minute. */
  async function setUpWaiting() {
    const world = await setUp();
    await world.see('alpha', { slow: 'RUNNING' });
    world.change('alpha', { expectations: { PENDING: configured, RUNNING: learned } });
    world.clock.advance(3 * HOUR + 39 * MINUTE);
    await world.see('beta', { quick: 'RUNNING' });
    await world.see('gamma', {});
    world.clock.advance(MINUTE);
    for (const id of ['alpha', 'beta', 'gamma']) {
      world.change(id, { nextPollAt: world.clock.now() + SECOND });
    }
    return world;
  }

  it('appear beside each waiting prompt, with a stuck mark beyond the limit', async () => {
    await using world = await setUpWaiting();
    const words = 'for 3 h 40 min, usually 20 min, limit 1 h (learned) ! stuck';

    const { text, html } = await world.read();
    const waiting = text.slice(text.indexOf('Prompts that are PENDING or RUNNING'));
    const project = await world.read('/projects/alpha');

    expect(waiting).toContain(words);
    expect(waiting).toContain('for 1 min, limit 4 h (default) since');
    expect(text).toContain(`Longest RUNNING ${words}`);
    expect(text).toContain('. Stuck prompts in 1 project.');
    expect(html).toContain(
      '<title>evalwatch is healthy and monitors every project · 0 failures · stuck prompts in 1 project · evalwatch</title>',
    );
    expect(html).toMatch(/data-summary="[^"]*24 hours\. Stuck prompts in 1 project\."/);
    expect(project.text).toContain(`Longest RUNNING ${words}`);
    expect(project.html).toContain('<title>Up, with stuck prompts · alpha · evalwatch</title>');
    const prompts = project.text.slice(project.text.indexOf('Prompts, newest change first'));
    expect(prompts).toContain('RUNNING ! stuck');
    expect((await world.read('/projects/beta')).text).not.toContain('stuck');
  });

  it('mark no prompt as stuck without a limit or while the limit is unknown', async () => {
    await using world = await setUpWaiting();
    world.change('alpha', { expectations: { PENDING: off, RUNNING: off } });
    expect((await world.read()).text).toContain('RUNNING for 3 h 40 min, no limit');
    world.change('alpha', { expectations: undefined });
    const { text } = await world.read();
    expect(text).toContain('RUNNING for 3 h 40 min since');
    expect(text).not.toMatch(/stuck/i);
    expect((await world.read('/projects/alpha')).text).toContain('RUNNING not known yet');
  });

  it('mark no prompt as stuck while its project is down', async () => {
    await using world = await setUpWaiting();
    await world.fail('alpha', 'timeout');
    const { text } = await world.read();
    expect(text).toContain('for 3 h 40 min, usually 20 min, limit 1 h (learned)');
    expect(text).not.toMatch(/stuck/i);
  });

  it('sort projects with stuck prompts before projects with failures', async () => {
    await using world = await setUpWaiting();
    await world.see('gamma', { a: 'FAILED' });
    const { text } = await world.read();
    const cards = text.slice(text.indexOf('projects watched'));
    expect(order(cards, ['alpha', 'beta', 'gamma'])).toEqual(['alpha', 'gamma', 'beta']);
  });

  it('appear with the team and the failure objective of each project', async () => {
    await using world = await setUpWaiting();
    const expect05 = {
      limits: { PENDING: 90_000, RUNNING: 'auto' },
      maxFailureRatio: 0.055,
    } as const;
    world.change('alpha', { team: 'search_1', expect: expect05 });
    world.change('beta', { expect: { ...expect05, maxFailureRatio: undefined } });

    const cards = (await world.read()).text;
    const alpha = (await world.read('/projects/alpha')).text;
    const beta = (await world.read('/projects/beta')).text;

    expect(cards).toContain('Team search_1 Objective at most 5.5 % of finished prompts may fail');
    expect(alpha).toContain(
      'Team search_1 PENDING limit 1 min 30 s (configured) RUNNING usually 20 min, limit 1 h (learned) Objective at most 5.5 % of finished prompts may fail',
    );
    expect(beta).toContain(
      'Team none PENDING limit 1 h (default) RUNNING limit 4 h (default) Objective none',
    );
  });
});

describe('causes of failures on the status page', () => {
  /** Lets 3 prompts of alpha fail 2 days ago and 5 now, and 2 of beta now. The last of alpha is not settled. */
  async function setUpCauses() {
    const world = await setUp();
    const of = (ids: string, status: string) =>
      Object.fromEntries(Array.from(ids, (id) => [id, status]));
    const fail = async (project: string, ids: string) => {
      await world.see(project, of(ids, 'RUNNING'));
      await world.see(project, of(ids, 'FAILED'));
    };
    const settle = async () => {
      await world.settle((id) => {
        if (id === 'z') return undefined;
        if (id === 'n') return { reason: 'not_found' };
        const errorInfo = /[a-e]/.test(id)
          ? { error_id: 'PARSE_ERROR', error_msg: `row ${id.charCodeAt(0)} is no JSON` }
          : { error_id: 'TIMEOUT<b>', error_msg: null };
        return { errorInfo, errorMsgTruncated: false };
      });
    };
    await fail('alpha', 'abc');
    await settle();
    world.clock.advance(2 * 24 * HOUR);
    await fail('alpha', 'denxz');
    await fail('beta', 'ex');
    await settle();
    return world;
  }

  function causesOf(text: string): string {
    return text.slice(text.indexOf('Causes of failures'), text.indexOf('Newest failures'));
  }

  it('appear above the failures with their count and share, and are marked if new', async () => {
    await using world = await setUpCauses();

    const { text, html } = await world.read();
    const causes = causesOf(text);

    expect(causes).toMatch(
      /(?<!new )PARSE_ERROR [\da-f]{16} row 101 is no JSON row &lt;\*&gt; is no JSON 3 failures, 50 % in 2 projects/,
    );
    expect(causes).toMatch(
      /new TIMEOUT&lt;b&gt; [\da-f]{16} no error_msg 2 failures, 33 % in 2 projects/,
    );
    expect(causes).toMatch(/new no error_id [\da-f]{16} no error_msg 1 failure, 17 % in 1 project/);
    expect(html).toMatch(/<a href="\.\/api\/v1\/failures\?cause=[\da-f]{16}">3 failures</);
  });

  it('are restricted to one project on the page of that project', async () => {
    await using world = await setUpCauses();

    const alpha = await world.read('/projects/alpha');
    const beta = await world.read('/projects/beta');

    expect(causesOf(alpha.text)).toMatch(/PARSE_ERROR .* 2 failures, 50 % now/);
    expect(alpha.html).toMatch(/"\.\.\/api\/v1\/failures\?project=alpha&amp;cause=[\da-f]{16}"/);
    expect(causesOf(beta.text)).toMatch(/new PARSE_ERROR .* 1 failure, 50 % now/);
    expect(causesOf((await world.read('/projects/gamma')).text)).toContain(
      'No failure of the last 24 hours has a known cause.',
    );
  });

  it('are summed up in one row after the tenth', async () => {
    await using world = await setUp();
    await world.see('alpha', all(13, 'RUNNING'));
    await world.see('alpha', all(13, 'FAILED'));
    await world.settle((id) => ({
      errorInfo: { error_id: id, error_msg: null },
      errorMsgTruncated: false,
    }));

    expect(causesOf((await world.read()).text)).toContain('3 other causes 3 failures, 23 %');
  });
});

describe('prompts on the status page', () => {
  const promptUrl = () => 'https://e.example/{project}/{prompt_id}';

  it('link to their pages, and to the service if prompt_url is set, unless the id is a dot segment', async () => {
    await using world = await setUp();
    const long = 'x'.repeat(100);
    await world.see('alpha', { 'a"><b>': 'RUNNING', '..': 'RUNNING', [long]: 'RUNNING' });
    await world.see('alpha', { 'a"><b>': 'FAILED', '..': 'FAILED', [long]: 'RUNNING' });

    const without = (await world.read('/projects/alpha')).html;
    const { html } = await world.read('/projects/alpha', { promptUrl });

    expect(without).not.toContain('noreferrer');
    expect(html).not.toMatch(/prompts\/(\.|%2e)/i);
    const at = (id: string) => [`../projects/alpha/prompts/${id}`, `https://e.example/alpha/${id}`];
    const hostile = 'a%22%3E%3Cb%3E';
    const shown = { [hostile]: 'a&quot;&gt;&lt;b&gt;', [long]: `${'x'.repeat(80)}…` };
    for (const [id, text] of Object.entries(shown)) {
      const [page, service] = at(id);
      const link = `<a href="${page}"><bdi class="text">${text}</bdi></a>`;
      const out = `<a class="out" href="${service}" rel="noreferrer" `;
      const count = id === hostile ? 3 : 2;
      expect(without.split(link)).toHaveLength(count + 1);
      expect(html.split(link)).toHaveLength(count + 1);
      expect(html.split(out)).toHaveLength(count + 1);
    }
  });

  it('link to both on the overview, unlike datasets', async () => {
    await using world = await setUp();
    await world.see('beta', { w: 'RUNNING' });
    await world.see('beta', { d: 'RUNNING' }, 'dataset');
    await world.see('beta', { d: 'COMPLETED' }, 'dataset');

    const { html } = await world.read('/', { promptUrl });

    expect(html.match(/https:\/\/e\.example\/[^"]*/g)).toEqual(['https://e.example/beta/w']);
    expect(html.match(/\.\/projects\/[^"]*\/prompts\/[^"]*/g)).toEqual([
      './projects/beta/prompts/w',
    ]);
  });
});

describe('project page', () => {
  it('lists failures with their error_info, or why it is missing', async () => {
    await using world = await setUp();
    await world.see('alpha', { a: 'RUNNING', b: 'RUNNING', c: 'RUNNING' });
    await world.see('alpha', { a: 'FAILED', b: 'FAILED', c: 'FAILED' });
    await world.settle((id) => {
      if (id === 'a') return { reason: 'not_found' };
      if (id === 'b') return undefined;
      return { errorInfo: { error_id: 'E_42', error_msg: null }, errorMsgTruncated: true };
    });

    const { text } = await world.read('/projects/alpha');

    expect(text).toMatch(/FAILED c now [-0-9: ]+ UTC name of c error_id E_42/);
    expect(text).toContain('No error_info, because the service no longer has the prompt');
    expect(text).toContain('not fetched yet');
    expect(text).toContain('error_id E_42 error_msg none Cut at 8,192 bytes.');
  });

  it('reads nothing of other projects', async () => {
    await using world = await setUp();
    await world.seeAll();
    const read = vi.spyOn(world.store, 'snapshot');

    const projects = () => {
      throw new Error('not asked for');
    };
    await world.read('/projects/beta', { projects });

    expect(read.mock.calls).toEqual([['beta']]);
  });

  it('lists only prompts of the requested status', async () => {
    await using world = await setUp();
    await world.see('alpha', { done: 'COMPLETED', odd: 'PAUSED' });

    const { text } = await world.read('/projects/alpha?status=UNKNOWN');

    expect(text).toContain('Prompts that are UNKNOWN');
    expect(text).toContain('PAUSED');
    expect(text.slice(text.indexOf('Prompts that are UNKNOWN'))).not.toContain('done');
  });

  it('ignores the case of a status, and says which statuses there are if it does not exist', async () => {
    await using world = await setUp();
    await world.see('alpha', { done: 'COMPLETED', odd: 'PAUSED' });

    const lower = await world.read('/projects/alpha?status=completed');
    const unknown = await world.read('/projects/alpha?status=%3Cb%3Edone');

    expect(lower.text).toMatch(
      /Prompts that are COMPLETED (?:(?!PAUSED).)* done (?:(?!PAUSED).)*Recent/,
    );
    expect(lower.text).not.toContain('There is no status');
    const empty = await world.read('/projects/alpha?status=');
    expect(empty.text).not.toContain('There is no status');
    expect(unknown.text).toContain(
      'There is no status &lt;b&gt;done, so all prompts are listed. The statuses are PENDING, RUNNING, COMPLETED, FAILED, UNKNOWN.',
    );
    expect(unknown.text).toContain('PAUSED');
  });

  it('shows the stored history of a project that was removed from the configuration', async () => {
    await using world = await setUp();
    await world.see('alpha', { a: 'RUNNING' });
    await world.see('alpha', { a: 'FAILED' });
    await world.configure(['beta']);

    const { status, text } = await world.read('/projects/alpha');

    expect(status).toBe(200);
    expect(text).toContain('No longer in the configuration');
    expect(text).toContain('RUNNING → ✗ FAILED');
  });

  it('is an HTML 404 with the escaped id for an unknown project', async () => {
    await using world = await setUp();

    const { status, headers, html } = await world.read('/projects/%3Cscript%3E');

    expect(status).toBe(404);
    expect(headers.get('content-type')).toContain('text/html');
    expect(html).toContain('&lt;script&gt;');
  });

  it.each(['a/b', '?x=1#y', 'ü\u202E'])(
    'is reachable through its link on the overview for the id %j',
    async (id) => {
      await using world = await setUp();
      await world.configure([id]);
      const { html } = await world.read('/');

      const [, href = ''] = /<h3>\s*<a href="\.(\/projects\/[^"]+)"/.exec(html) ?? [];
      const { status, text } = await world.read(href);

      expect(status).toBe(200);
      expect(text).toContain('Not polled yet');
    },
  );
});

it('the status page has a Content-Security-Policy that allows only its own files', async () => {
  await using world = await setUp();

  for (const path of ['/', '/projects/alpha', '/projects/nobody']) {
    const { headers } = await world.read(path);
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self'; /,
    );
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('content-security-policy')).not.toContain('unsafe');
    expect(headers.get('referrer-policy')).toBe('same-origin');
  }
});

it('the status page links style, script and icon by immutable URLs, and an outdated URL is a 404', async () => {
  await using world = await setUp();
  const { html } = await world.read();

  const paths = [...html.matchAll(/(?:href|src)="\.(\/assets\/[^"]+)"/g)].map(([, path]) => path);
  expect(paths).toHaveLength(3);
  for (const path of paths) {
    const { status, headers } = await world.read(path);
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toContain('immutable');
    expect(headers.get('content-type')).toMatch(/^(?:text\/css|text\/javascript|image\/svg\+xml);/);
  }
  expect((await world.read('/assets/style-0000.css')).status).toBe(404);
});

it.each(['alpha', "a'b", '../x'])(
  'the page of project %j has a "Poll now" button only if the lifecycle API is enabled and it is not paused',
  async (id) => {
    await using world = await setUp();
    await world.configure([id]);
    const path = `/projects/${encodeURIComponent(id)}`;

    const change = { isLifecycleEnabled: () => true };
    const { html } = await world.read(path, change);

    const [, action = ''] = /<form method="post" action="([^"]+)">/.exec(html) ?? [];
    const { pathname, searchParams } = new URL(
      action.replaceAll('&#39;', "'"),
      `http://host${path}`,
    );
    expect([pathname, searchParams.get('project')]).toEqual(['/-/poll', id]);
    expect((await world.read(path)).html).not.toContain('Poll now');
    world.change(id, { pause: { until: undefined, polls: 'stop' } });
    expect((await world.read(path, change)).html).not.toContain('Poll now');
  },
);

describe('a page that is asked for again', () => {
  async function setUpCounting() {
    const world = await setUp();
    const made = vi.spyOn(world.store, 'failures');
    const page = createPage(world.content);
    page.post('/-/poll', (context) => context.body(null, 303));
    return { world, made, page, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
  }

  it('is the same for all clients for a second', async () => {
    await using counting = await setUpCounting();
    const { world, made, page } = counting;

    await Promise.all(['/', '/', '/projects/alpha'].map(async (path) => await page.request(path)));
    expect(made).toHaveBeenCalledTimes(2);
    world.clock.advance(999);
    await page.request('/');
    expect(made).toHaveBeenCalledTimes(2);
    world.clock.advance(1);
    await page.request('/');
    expect(made).toHaveBeenCalledTimes(3);
  });

  it('is made again after a poll on request, also if it was begun before', async () => {
    await using counting = await setUpCounting();
    const { world, made, page } = counting;
    const before = page.request('/projects/alpha');

    await world.see('alpha', { fresh: 'RUNNING' });
    expect((await page.request('/-/poll?project=alpha', { method: 'POST' })).status).toBe(303);
    await before;

    expect(await (await page.request('/projects/alpha')).text()).toContain('fresh');
    expect(made).toHaveBeenCalledTimes(2);
  });

  it('is made again after an error', async () => {
    await using counting = await setUpCounting();
    const { made, page } = counting;
    page.onError((_error, context) => context.text('no', 500));
    made.mockRejectedValueOnce(new Error('no'));

    const both = await Promise.all([page.request('/'), page.request('/')]);
    expect(both.map(({ status }) => status)).toEqual([500, 500]);
    expect((await page.request('/')).status).toBe(200);
  });
});

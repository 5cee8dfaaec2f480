import { describe, expect, it } from 'vitest';
import { StoreError } from '../../../../src/monitor/errors.ts';
import { HOUR, MINUTE, NIGHT, openPageWorld, SECOND } from '../../../support/page/world.ts';
import { storeWith } from '../../../support/store-with.ts';

const PROMPT = '/projects/alpha/prompts/a';
const promptUrl = () => 'https://e.example/{project}/{prompt_id}';

/** Lets the prompt `a` of alpha wait for 5 minutes, fail after 20, run again for 2, and fail again. */
async function setUp() {
  const world = await openPageWorld(NIGHT - 3 * HOUR);
  await world.configure(['alpha', 'beta']);
  const see = (status: string) =>
    world.see('alpha', {
      a: { status, name: 'tool choice', experiment: 'nightly' },
      other: status === 'PENDING' ? 'PENDING' : 'FAILED',
    });
  await world.see('alpha', { old: 'COMPLETED' });
  const life = [
    ['PENDING', 5 * MINUTE],
    ['RUNNING', 20 * MINUTE],
    ['FAILED', HOUR],
    ['RUNNING', 2 * MINUTE],
    ['FAILED', 30 * SECOND],
  ] as const;
  let failures = 0;
  for (const [status, ms] of life) {
    await see(status);
    if (status === 'FAILED') {
      failures += 1;
      const errorInfo = { error_id: 'PARSE', error_msg: `row ${failures} is no JSON` };
      await world.settle(() => ({ errorInfo, errorMsgTruncated: false }));
    }
    world.clock.advance(ms);
  }
  world.change('alpha', { nextPollAt: undefined });
  return Object.assign(world, { seeA: see });
}

describe('the page of a prompt', () => {
  it('shows what it is, and each move with the time before it', async () => {
    await using world = await setUp();

    const { status, text, html } = await world.read(PROMPT, { promptUrl });

    expect(status).toBe(200);
    expect(html).toContain('<title>FAILED · a · alpha · evalwatch</title>');
    expect(html).toContain('data-summary="FAILED."');
    expect(text).toMatch(
      /← All projects \/ alpha a ✗ FAILED for 30 s Name tool choice Experiment nightly Since 30 s ago/,
    );
    expect(html).toContain('<a href="../../../projects/alpha/experiments/nightly">');
    expect(html).toMatch(/href="https:\/\/e.example\/alpha\/a" [^>]*>Open at the service</);
    const moves = text.slice(text.indexOf('Transitions, newest'));
    expect(moves).toMatch(
      new RegExp(
        [
          '▶ RUNNING → ✗ FAILED after 2 min 30 s ago .*',
          '✗ FAILED → ▶ RUNNING after 1 h 2 min ago .*',
          '▶ RUNNING → ✗ FAILED after 20 min 1 h 2 min ago .*',
          '○ PENDING → ▶ RUNNING after 5 min 1 h 22 min ago .*',
          '\\+ NEW → ○ PENDING not seen 1 h 27 min ago',
        ].join(' '),
      ),
    );
    expect(text).not.toContain('other');
  });

  it('says why a prompt that had failed before the first poll has no failure', async () => {
    await using world = await setUp();
    await world.see('beta', { old: 'FAILED', done: 'COMPLETED' });

    const why = 'It had failed before the first poll of its project';
    expect((await world.read('/projects/beta/prompts/old')).text).toContain(why);
    expect((await world.read('/projects/beta/prompts/done')).text).not.toContain(why);
    expect((await world.read(PROMPT)).text).not.toContain(why);
  });

  it('shows its failures with their error_info and cause, and no other ones', async () => {
    await using world = await setUp();

    const { text, html } = await world.read(PROMPT);

    const failures = text.slice(
      text.indexOf('Newest failures'),
      text.indexOf('Transitions, newest'),
    );
    expect(failures).toMatch(
      /row 2 is no JSON Cause ([\da-f]{16}): all its failures as JSON .* row 1 is no JSON Cause \1/,
    );
    expect(failures.match(/Cause/g)).toHaveLength(2);
    expect(html).toMatch(/"..\/..\/..\/api\/v1\/failures\?project=alpha&amp;cause=[\da-f]{16}"/);
    expect(html).not.toContain('noreferrer');
  });

  it('shows how long a running one may take, and that it is stuck', async () => {
    await using world = await setUp();
    await world.seeA('RUNNING');
    const learned = { limitMs: HOUR, source: 'learned', typicalMs: 20 * MINUTE } as const;
    world.change('alpha', { expectations: { PENDING: learned, RUNNING: learned } });
    world.clock.advance(100 * MINUTE);

    expect((await world.read(PROMPT)).text).toContain(
      'RUNNING for 1 h 40 min, usually 20 min, limit 1 h (learned) ! stuck',
    );
    await world.fail('alpha', 'timeout');
    const { text } = await world.read(PROMPT);
    expect(text).toContain('May be out of date: its project is down.');
    expect(text).not.toContain('stuck');
    await world.configure(['beta']);
    expect((await world.read(PROMPT)).text).toContain('its project is no longer configured');
  });

  it('says that none of its moves is known', async () => {
    await using world = await setUp();
    const { text, status } = await world.read('/projects/alpha/prompts/old', {
      store: storeWith(world.store, {
        statuses: async () => [
          {
            project: 'alpha',
            promptId: 'old',
            promptName: undefined,
            status: 'UNKNOWN',
            statusRaw: 'paused\u202e',
            since: NIGHT,
            missing: 1,
            dataset: 'd"><b>',
            metric: 'm',
          },
        ],
      }),
    });
    expect(status).toBe(200);
    expect(text).toMatch(/\? UNKNOWN .*Dataset d&quot;&gt;&lt;b&gt; Metric m Since/);
    expect(text).toMatch(/Status of the service paused\\u202e Listings without it 1 in a row/);
    expect(text).toMatch(/Newest failures None\. Transitions None\./);
  });

  it('shows 100 moves and 20 failures, with links to all', async () => {
    await using world = await setUp();
    for (let move = 0; move < 100; move += 1) {
      await world.seeA(move % 2 === 0 ? 'RUNNING' : 'FAILED');
      world.clock.advance(MINUTE);
    }

    const { text, html } = await world.read(PROMPT);

    const moves = text.slice(text.indexOf('Transitions, newest'));
    expect(moves.match(/→/g)).toHaveLength(100);
    expect(moves.match(/ after /g)).toHaveLength(100);
    expect(text.match(/error_info: not fetched yet/g)).toHaveLength(20);
    for (const name of ['transitions', 'failures']) {
      expect(html).toContain(`href="../../../api/v1/${name}?project=alpha&amp;prompt_id=a"`);
    }
  });

  it('says that it is gone, with its moves and failures', async () => {
    await using world = await setUp();
    for (let polls = 0; polls < 2; polls += 1) await world.see('alpha', { old: 'COMPLETED' });

    const { status, text, html } = await world.read(PROMPT);

    expect(status).toBe(200);
    expect(html).toContain('<title>Gone · a · alpha · evalwatch</title>');
    expect(text).toMatch(
      /Gone: the service no longer lists it. It was last seen as ✗ FAILED Name tool choice Experiment nightly/,
    );
    expect(text).toMatch(/row 2 is no JSON.*▶ RUNNING → ✗ FAILED after 2 min/);
  });

  it('is an HTML 404 if it is unknown, or its project is', async () => {
    await using world = await setUp();
    await world.see('alpha', { ds: 'RUNNING' }, 'dataset');
    await world.see('alpha', { ds: 'FAILED' }, 'dataset');
    for (const path of ['%3Cb%3E', 'A', 'ds', '%00', '%ed%a0%80', 'y'.repeat(500)]) {
      const { status, text } = await world.read(`/projects/alpha/prompts/${path}`);
      expect(status).toBe(404);
      expect(text).toContain('✗ Unknown prompt No prompt of this project has this id.');
    }
    const elsewhere = await world.read('/projects/beta/prompts/a');
    const nowhere = await world.read('/projects/nobody/prompts/a');
    expect([elsewhere.status, nowhere.status]).toEqual([404, 404]);
    expect(nowhere.text).toContain('nobody ✗ Unknown project It is neither');
  });

  it('says that the store cannot be read', async () => {
    await using world = await setUp();
    const broken = () => Promise.reject(new StoreError('io', 'page 7'));
    for (const method of ['statuses', 'transitions', 'failures']) {
      const store = storeWith(world.store, { [method]: broken });
      const { status, text } = await world.read(PROMPT, { store });
      expect(status).toBe(200);
      expect(text).toContain('✗ The store cannot be read');
      expect(text).not.toContain('page 7');
    }
  });

  it.each([
    'a/b',
    '%2e%2e',
    '"><script>alert(1)</script>',
    'ü\u202E\n\u001b[2J',
    '😀'.repeat(250),
    `${'x'.repeat(499)}/`,
  ])('is reachable through its links on all pages for the id %j', async (id) => {
    await using world = await openPageWorld();
    const project = 'p/ü%';
    const experiment = 'e';
    await world.configure([project]);
    await world.see(project, {});
    await world.see(project, { [id]: { status: 'FAILED', name: id, experiment } });
    const part = encodeURIComponent(project);

    for (const path of ['/', `/projects/${part}`, `/projects/${part}/experiments/e`]) {
      const { html } = await world.read(path);
      const links = html.match(/(?<=<a href=")[^"]+\/prompts\/[^"]+(?=")/g) ?? [];
      expect(links.length).toBeGreaterThan(0);
      for (const href of new Set(links)) {
        const { pathname } = new URL(href.replaceAll('&#39;', "'"), `http://host${path}`);
        const { status, text, html: page } = await world.read(pathname);
        expect(status).toBe(200);
        expect(text).toContain('✗ FAILED for less than 1 s');
        for (const raw of ['\u202E', '\u001b', '<script>']) expect(page).not.toContain(raw);
      }
    }
  });
});

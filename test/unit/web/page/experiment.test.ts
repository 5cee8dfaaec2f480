import { describe, expect, it } from 'vitest';
import { StoreError } from '../../../../src/monitor/errors.ts';
import { HOUR, MINUTE, NIGHT, openPageWorld } from '../../../support/page/world.ts';
import { storeWith } from '../../../support/store-with.ts';

const PROJECT = '/projects/alpha';
const NIGHTLY = `${PROJECT}/experiments/nightly-42`;

/** Lets `nightly-42` of alpha finish after 41 minutes with two failures, and `weekly` run. One prompt has no experiment. */
async function setUp() {
  const world = await openPageWorld(NIGHT - 3 * HOUR);
  await world.configure(['alpha', 'beta']);
  const see = (...statuses: string[]) =>
    world.see('alpha', {
      ...Object.fromEntries(
        statuses.map((status, n) => [`n${n}`, { status, experiment: 'nightly-42' }]),
      ),
      w: { status: 'RUNNING', experiment: 'weekly' },
      lonely: 'COMPLETED',
    });
  await see('PENDING', 'PENDING', 'PENDING');
  world.clock.advance(MINUTE);
  await see('RUNNING', 'PENDING', 'PENDING');
  world.clock.advance(41 * MINUTE);
  await see('FAILED', 'FAILED', 'COMPLETED');
  await world.settle((id) => ({
    errorInfo: { error_id: 'PARSE', error_msg: `row ${id.slice(1)} is no JSON` },
    errorMsgTruncated: false,
  }));
  world.clock.advance(MINUTE);
  await see('FAILED', 'FAILED', 'COMPLETED');
  world.change('alpha', { nextPollAt: undefined });
  return world;
}

const sectionOf = (text: string, from: string, to: string) =>
  text.slice(text.indexOf(from), text.indexOf(to));

describe('the experiments of a project on its page', () => {
  it('show their prompts by status, their state and how long they took, and last what has none', async () => {
    await using world = await setUp();

    const { text, html } = await world.read(PROJECT);

    const section = sectionOf(text, 'Experiments, last', 'Causes of failures');
    expect(section).toMatch(
      /nightly-42 ✗ FAILED 2 ✓ COMPLETED 1 67 % of finished prompts failed ✓ finished after 41 min last move 1 min ago/,
    );
    expect(section).toMatch(/weekly ▶ RUNNING 1 ▶ running none ✓ COMPLETED 1/);
    expect(section.indexOf('nightly-42')).toBeLessThan(section.indexOf('weekly'));
    expect(html).toContain('<a href="../projects/alpha/experiments/nightly-42">');
    expect(html).toContain('href="../api/v1/prompts?project=alpha&amp;experiment="');
  });

  it('say of one that had ended before that it does not finish', async () => {
    await using world = await setUp();
    await world.see('beta', { a: { status: 'COMPLETED', experiment: 'old' } });
    for (const path of ['/projects/beta', '/projects/beta/experiments/old']) {
      expect((await world.read(path)).text).toContain('■ ended before a move was seen');
    }
  });

  it('are left out if it has none, and on the overview', async () => {
    await using world = await setUp();
    await world.see('beta', { a: 'RUNNING' });
    for (const path of ['/', '/projects/beta']) {
      expect((await world.read(path)).html).not.toContain('Experiments, last');
    }
  });

  it('are the 20 that moved last, with a link to all', async () => {
    await using world = await setUp();
    const of = (status: string) =>
      Object.fromEntries(
        Array.from({ length: 30 }, (_, n) => [`p${n}`, { status, experiment: `${n} of 30` }]),
      );
    await world.see('beta', of('RUNNING'));
    await world.see('beta', of('FAILED'));

    const { text, html } = await world.read('/projects/beta');

    const section = sectionOf(text, 'Experiments, last', 'Causes of failures');
    expect(section.match(/\d+ of 30/g)).toHaveLength(20);
    expect(section).toContain('Only the newest are shown. All experiments as JSON');
    expect(html).toContain('href="../api/v1/experiments?project=beta"');
  });

  it('are named where their prompts and failures are listed', async () => {
    await using world = await setUp();
    const { text } = await world.read(PROJECT);
    expect(sectionOf(text, 'Newest failures', 'Longest waiting')).toContain('in nightly-42');
    expect(sectionOf(text, 'Prompts, newest', 'Recent trans')).toMatch(
      /n2 name of n2 in nightly-42/,
    );
  });
});

describe('the page of an experiment', () => {
  it('shows its state, its times and its prompts by status', async () => {
    await using world = await setUp();

    const { status, text, html } = await world.read(NIGHTLY);

    expect(status).toBe(200);
    expect(html).toContain('<title>Finished · nightly-42 · alpha · evalwatch</title>');
    expect(html).toContain('data-summary="Finished. 2 prompts failed."');
    expect(text).toMatch(
      /✓ finished after 41 min First move 42 min ago .* Last move 1 min ago .* Ended 1 min ago .* Finished now/,
    );
    expect(html).toContain('<a href="?status=FAILED#prompts">');
  });

  it('shows the causes of its failures, its failures and its prompts, and nothing of others', async () => {
    await using world = await setUp();
    await world.see('alpha', { other: 'RUNNING', w: { status: 'FAILED', experiment: 'weekly' } });
    world.clock.advance(48 * HOUR);

    const { text, html } = await world.read(NIGHTLY);

    const causes = sectionOf(text, 'Causes of failures', 'Newest failures');
    expect(causes).toMatch(/PARSE [\da-f]{16} row 1 is no JSON .* 2 failures, 100 %/);
    expect(causes).not.toMatch(/new PARSE|A cause is new/);
    expect(html).toMatch(
      /failures\?project=alpha&amp;experiment=nightly-42&amp;cause=[\da-f]{16}"/,
    );
    const rest = text.slice(text.indexOf('Newest failures'));
    for (const id of ['n0', 'n1', 'n2']) expect(rest).toContain(`name of ${id}`);
    expect(rest).not.toMatch(/weekly|lonely|in nightly-42|name of w/);
  });

  it('says that it may be out of date while its project is not polled', async () => {
    await using world = await setUp();
    expect((await world.read(NIGHTLY)).text).not.toContain('out of date');
    await world.fail('alpha', 'timeout');
    expect((await world.read(NIGHTLY)).text).toContain(
      'May be out of date: its project is down. First move',
    );
    await world.configure(['beta']);
    expect((await world.read(NIGHTLY)).text).toContain('its project is no longer configured');
  });

  it('lists only prompts of the requested status', async () => {
    await using world = await setUp();
    const { text } = await world.read(`${NIGHTLY}?status=completed`);
    const prompts = text.slice(text.indexOf('Prompts that are COMPLETED'));
    expect(prompts).toContain('n2');
    expect(prompts).not.toContain('n1');
  });

  it('is an HTML 404 if no prompt is in it, or the project is unknown', async () => {
    await using world = await setUp();
    const unknown = await world.read(`${PROJECT}/experiments/%3Cb%3E`);
    const elsewhere = await world.read('/projects/beta/experiments/nightly-42');
    const nowhere = await world.read('/projects/nobody/experiments/nightly-42');
    expect([unknown.status, elsewhere.status, nowhere.status]).toEqual([404, 404, 404]);
    expect(unknown.text).toContain('&lt;b&gt; ✗ Unknown experiment No prompt of this project');
    expect(nowhere.text).toContain('nobody ✗ Unknown project It is neither');
  });

  it('says that the store cannot be read', async () => {
    await using world = await setUp();
    const broken = () => Promise.reject(new StoreError('io', 'page 7'));
    const store = storeWith(world.store, { experiments: broken });
    const { status, text } = await world.read(NIGHTLY, { store });
    expect(status).toBe(200);
    expect(text).toContain('The store cannot be read');
    expect(text).not.toContain('page 7');
  });

  it.each(['a/b', '%2e%2e', '?x=1#y', '"><b>'])(
    'is reachable through its link on the page of the project for the name %j',
    async (experiment) => {
      await using world = await setUp();
      const project = 'p/ü%';
      await world.configure([project]);
      await world.see(project, { a: { status: 'RUNNING', experiment } });

      const { html } = await world.read(`/projects/${encodeURIComponent(project)}`);
      const [, href = ''] =
        /<a href="\.\.(\/projects\/[^"]+\/experiments\/[^"]+)"/.exec(html) ?? [];
      const { pathname } = new URL(href.replaceAll('&#39;', "'"), 'http://host');
      const { status, text } = await world.read(pathname);

      expect(status).toBe(200);
      expect(text).toContain('name of a');
    },
  );

  it('shows no hidden character of a name, also in its title', async () => {
    await using world = await setUp();
    const name = `evil\u202e${'x'.repeat(500)}`;
    const project = 'beta\u202e';
    await world.configure([project]);
    await world.see(project, { a: { status: 'RUNNING', experiment: name } });
    const path = `/projects/${encodeURIComponent(project)}`;
    for (const each of [name, 'evil\u202e of nobody']) {
      const { html } = await world.read(`${path}/experiments/${encodeURIComponent(each)}`);
      expect(html).not.toContain('\u202e');
      expect(html).toMatch(/<title>\w.* · evil\\u202e.{0,80} · beta\\u202e ·/);
    }
    for (const other of [path, `${path}/prompts/a`]) {
      expect((await world.read(other)).html).not.toContain('\u202e');
    }
  });

  it.each(['.', '..'])(
    'does not exist for the name %j, which no URL can end with',
    async (name) => {
      await using world = await setUp();
      await world.see('beta', { a: { status: 'RUNNING', experiment: name } });
      const { text, html } = await world.read('/projects/beta');
      expect(sectionOf(text, 'Experiments, last', 'Causes of')).toContain(`${name} ▶ RUNNING 1`);
      expect(html).not.toContain('/experiments/');
    },
  );
});

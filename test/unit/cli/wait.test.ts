import { mkdtemp, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { main } from '../../../src/cli/main.ts';
import { commandLine } from '../../support/command-line.ts';
import { PATIENCE } from '../../support/evalwatch.ts';
import { FakeDaemon } from '../../support/fake-daemon.ts';
import { freePort } from '../../support/free-port.ts';

const NONE = { PENDING: 0, RUNNING: 0, COMPLETED: 0, FAILED: 0, UNKNOWN: 0 };
const RUNS = { state: 'running', prompts: { ...NONE, RUNNING: 3, COMPLETED: 37 } } as const;
const MINUTE = 60_000;
const ago = (ms: number) => new Date(Date.now() - ms).toISOString();
const finish = (experiment: string) => ({ experiment });

function wait(daemon: FakeDaemon, ...options: string[]) {
  return commandLine(['wait', '--url', daemon.url, '--project', 'alpha', ...options]);
}

/** Waits until the experiments were read so many times in all. */
async function read(daemon: FakeDaemon, times = 1): Promise<void> {
  await vi.waitFor(() => {
    const reads = daemon.requests.filter(({ url }) => url?.startsWith('/api/v1/experiments'));
    expect(reads.length).toBeGreaterThanOrEqual(times);
  }, PATIENCE);
}

describe.concurrent('evalwatch wait', () => {
  it.each([
    ['0', { COMPLETED: 40 }, 0],
    ['0', { COMPLETED: 39, FAILED: 1 }, 1],
    ['0.05', { COMPLETED: 38, FAILED: 2 }, 0],
    ['0.05', { COMPLETED: 37, FAILED: 3 }, 1],
    ['0.05', { COMPLETED: 37, FAILED: 2, UNKNOWN: 1 }, 1],
    ['1', { FAILED: 1 }, 0],
  ])('with the ratio %s and %o exits %i', async (ratio, counts, code) => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly', { prompts: { ...NONE, ...counts } });
    const waited = await wait(daemon, '--experiment', 'nightly', '--max-failure-ratio', ratio);
    expect(waited.code).toBe(code);
    expect(waited.stdout).toMatch(code === 0 ? /^OK: / : /^FAILED: /);
  });

  it('waits for an experiment that is not known yet, and for no other one', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('other');
    const waiting = wait(daemon, '--experiment', 'nightly');
    await read(daemon);
    daemon.send('experiment', finish('other'));
    daemon.set('nightly', { prompts: { ...NONE, COMPLETED: 1, FAILED: 1 } });
    daemon.addPrompt(
      { experiment: 'nightly', status: 'FAILED' },
      { error_id: 'E\u202e1', error_msg: 'bad' },
    );
    daemon.send('experiment', finish('nightly'));
    expect(await waiting).toEqual({
      code: 1,
      signal: null,
      stdout:
        'FAILED: nightly of alpha finished after 41 min: 1 completed, 1 failed (E\\u202e1 1)\n',
      stderr: 'waiting for nightly of alpha: it is not known yet\nwaiting for nightly of alpha\n',
    });
  });

  it.each([
    [[], 50 * MINUTE, true],
    [[], 70 * MINUTE, false],
    [['--since', '2h'], 70 * MINUTE, true],
    [['--since', '0s'], 2000, false],
  ])('with %o and a finish %i ms ago counts it: %s', async (options, ageMs, counts) => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly', { finished: ago(ageMs), prompts: { ...NONE, FAILED: 1 } });
    const waiting = wait(daemon, '--experiment', 'nightly', ...options);
    if (!counts) {
      await read(daemon);
      daemon.set('nightly', RUNS);
      daemon.send('reset', { reason: 'unknown_id' });
      await read(daemon, 2);
      daemon.set('nightly');
      daemon.send('experiment', finish('nightly'));
    }
    expect(await waiting).toMatchObject({ code: counts ? 1 : 0 });
  });

  it('without --experiment waits for all that run, and for one that begins meanwhile', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('old', { finished: ago(MINUTE), prompts: { ...NONE, FAILED: 1 } });
    daemon.set('before', { state: 'ended', first_move: null, prompts: { ...NONE, FAILED: 1 } });
    daemon.set('one', RUNS);
    const waiting = wait(daemon);
    await read(daemon);
    daemon.set('one');
    daemon.set('two', RUNS);
    daemon.send('experiment', finish('one'));
    await read(daemon, 2);
    daemon.set('two', { prompts: { ...NONE, COMPLETED: 1 } });
    daemon.send('experiment', finish('two'));
    expect(await waiting).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^OK: one of .*\nOK: two of .*\n$/),
      stderr: expect.stringMatching(/^waiting for one of alpha\nwaiting for two of alpha\n/),
    });
  });

  it('without --experiment and without one that runs waits for the next one', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly', { finished: ago(MINUTE), prompts: { ...NONE, FAILED: 1 } });
    const waiting = wait(daemon);
    await read(daemon);
    daemon.send('reset', { reason: 'retention' });
    await read(daemon, 2);
    daemon.set('nightly');
    daemon.send('experiment', finish('nightly'));
    expect(await waiting).toMatchObject({ code: 0 });
  });

  it('goes on for an experiment that is reopened while its results are read', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly');
    let isReopened = false;
    daemon.onAnswered = (path) => {
      if (path !== 'failures' || isReopened) return;
      isReopened = true;
      daemon.set('nightly', RUNS);
    };
    const waiting = wait(daemon, '--experiment', 'nightly');
    await vi.waitFor(() => expect(isReopened).toBe(true), PATIENCE);
    await read(daemon, 2);
    daemon.set('nightly', { prompts: { ...NONE, FAILED: 1 } });
    daemon.send('experiment', finish('nightly'));
    expect(await waiting).toMatchObject({ code: 1 });
  });

  it('resumes after a lost connection and errors, and reads what it missed', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly', RUNS);
    const waiting = wait(daemon, '--experiment', 'nightly');
    await read(daemon);
    daemon.send('transition', {}, 't7.f0.x0');
    daemon.send('reset', { reason: 'retention' });
    await read(daemon, 2);
    // No event says that it finishes.
    daemon.set('nightly');
    let refusals = 1;
    daemon.instead = () => {
      if (refusals === 0) return undefined;
      refusals -= 1;
      return [503, { error: 'the store\u001b[2J cannot be read' }];
    };
    daemon.disconnect();
    const { code, stderr } = await waiting;
    expect(code).toBe(0);
    expect(stderr).toContain(
      'the daemon answers 503: the store\\u001b[2J cannot be read: trying again\n',
    );
    const streams = daemon.requests.filter(({ url }) => url?.startsWith('/api/v1/events'));
    expect(streams.at(-1)?.url).toContain('after=t7.f0.x0');
  });

  it('exits 3 when the time is over, with what it knows', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly', { ...RUNS, prompts: { ...RUNS.prompts, FAILED: 1 } });
    const waiting = wait(daemon, '--experiment', 'nightly', '--timeout', '5s', '--json');
    await read(daemon);
    daemon.instead = () => [503, {}];
    daemon.disconnect();
    const { code, stdout, stderr } = await waiting;
    expect(code).toBe(3);
    expect(stderr).toMatch(/\nerror: not finished within 5s, and the daemon does not answer\n$/);
    expect(JSON.parse(stdout)).toEqual([
      { ...daemon.experiments.get('nightly'), failure_ratio: 4 / 41, ok: false },
    ]);
  });

  it('reads once more when the time is over', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly', RUNS);
    daemon.onAnswered = (path) => {
      if (path !== 'experiments') return;
      daemon.onAnswered = () => {};
      daemon.set('nightly', { prompts: { ...NONE, FAILED: 1 } });
    };
    const waited = await wait(daemon, '--experiment', 'nightly', '--timeout', '5s');
    expect(waited).toMatchObject({ code: 1, stdout: expect.stringContaining(' 1 failed') });
  });

  it('names what it waits for in the same order, and says what does not finish', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('two', RUNS);
    daemon.set('three', RUNS);
    daemon.set('one', { state: 'ended', first_move: null });
    const all = wait(daemon, '--timeout', '5s');
    const ended = wait(daemon, '--experiment', 'one', '--timeout', '5s');
    expect((await all).stderr).toBe(
      'waiting for three, two of alpha\nerror: not finished within 5s\n',
    );
    expect((await ended).stderr).toBe(
      'waiting for one of alpha: it has ended, but evalwatch has seen no prompt of it move\n' +
        'error: not finished within 5s\n',
    );
  });

  it('tries until the time is over where nothing listens', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const args = ['wait', '--url', url, '--project', 'alpha', '--timeout', '100ms'];
    expect(await commandLine(args)).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringContaining('ECONNREFUSED'),
    });
  });

  it.each([400, 401, 403, 404, 421, 302])('ends at once with an answer %i', async (status) => {
    await using daemon = await FakeDaemon.start();
    daemon.instead = () => [status, { error: 'go away' }];
    expect(await wait(daemon)).toEqual({
      code: 2,
      signal: null,
      stdout: '',
      stderr: `error: the daemon answers ${status}: go away\n`,
    });
    expect(daemon.requests).toHaveLength(1);
  });

  it('ends at once if it is not evalwatch that answers, or the project is not polled', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.project = { ...daemon.project, project: 'beta' };
    expect(await wait(daemon)).toMatchObject({
      code: 2,
      stderr: 'error: the daemon does not poll the project alpha\n',
    });
    daemon.instead = ({ url }) => (url?.includes('/events') === true ? undefined : [200, ['?']]);
    expect(await wait(daemon)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('projects is not that of this version of evalwatch'),
    });
  });

  const BEFORE = '2026-11-29T10:00:00.000Z';
  const DOWN = {
    up: false,
    reason: 'auth',
    consecutive_failures: 3,
    last_poll: '2026-11-29T10:06:00.000Z',
    last_success: '2026-11-29T10:00:00.000Z',
  } as const;
  it.each([
    ['for 3 polls and over 5 minutes', DOWN, true],
    ['for 3 polls, without any success', { ...DOWN, last_success: null }, true],
    ['for 2 polls', { ...DOWN, consecutive_failures: 2 }, false],
    ['for 5 minutes', { ...DOWN, last_success: '2026-11-29T10:01:00.000Z' }, false],
    ['before the wait only', { ...DOWN, last_success: null, last_poll: BEFORE }, false],
  ])('exits 4 if a project could not be polled %s', async (_, down, isDown) => {
    await using daemon = await FakeDaemon.start();
    daemon.project = { ...daemon.project, ...down, last_poll: BEFORE };
    daemon.set('nightly', RUNS);
    const waiting = wait(daemon, '--experiment', 'nightly');
    await read(daemon);
    daemon.project = { ...daemon.project, ...down };
    daemon.send('poll', { ok: false });
    if (!isDown) {
      await read(daemon, 2);
      daemon.set('nightly');
      daemon.send('experiment', finish('nightly'));
    }
    const { code, stderr } = await waiting;
    expect(code).toBe(isDown ? 4 : 0);
    const words = 'error: evalwatch cannot poll alpha: the service refuses the API key';
    expect(stderr.includes(words)).toBe(isDown);
  });

  it('exits 4 if the project is paused until its configuration changes', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.project = { ...daemon.project, pause: { until: null, polls: 'stop' } };
    daemon.set('nightly', RUNS);
    const { code, stderr } = await wait(daemon, '--experiment', 'nightly');
    expect(code).toBe(4);
    expect(stderr).toContain('error: alpha is paused\n');
  });

  it('prints the moves of the experiment on a terminal, and nowhere else', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly', RUNS);
    const args = ['wait', '--url', daemon.url, '--project', 'alpha', '--experiment', 'nightly'];
    const [onTerminal, inPipeline] = [commandLine(args, 120), commandLine(args)];
    await read(daemon, 2);
    const move = {
      transition_id: 1,
      time: ago(0),
      project: 'alpha',
      from: 'RUNNING',
      to: 'FAILED',
    };
    daemon.send('transition', { ...move, prompt_id: 'p\u001b1', experiment: 'nightly' });
    daemon.send('transition', { ...move, prompt_id: 'p2', experiment: 'other' });
    daemon.set('nightly');
    daemon.send('experiment', finish('nightly'));
    expect((await onTerminal).stdout).toMatch(
      /^\S+Z {2}nightly {2}p\\u001b1 {2}RUNNING -> FAILED\nOK: .*\n$/,
    );
    expect((await inPipeline).stdout).toMatch(/^OK: .*\n$/);
  });

  it('keeps its exit code if the reader of stdout has closed it', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly', { prompts: { ...NONE, FAILED: 1 } });
    const gone = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    const stdout = new Writable({ write: (_chunk, _encoding, done) => done(gone) });
    const args = ['wait', '--url', daemon.url, '--project', 'alpha', '--experiment', 'nightly'];
    const io = { stdout, stderr: new PassThrough() };
    expect(await main(args, io, { onSignal: undefined })).toBe(1);
  });

  it('reads every page', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.pageSize = 1;
    daemon.set('other');
    daemon.set('nightly', { prompts: { ...NONE, FAILED: 3 } });
    for (const error_id of ['A', 'B', 'B']) {
      daemon.addPrompt({ experiment: 'nightly', status: 'FAILED' }, { error_id, error_msg: null });
    }
    const { stdout } = await wait(daemon, '--experiment', 'nightly');
    expect(stdout).toContain(': 0 completed, 3 failed (B 2, A 1)\n');
  });
});

it('counts no finish just before the start with --since 0s', async () => {
  await using daemon = await FakeDaemon.start();
  daemon.set('nightly', { finished: ago(0) });
  const options = ['--experiment', 'nightly', '--since', '0s', '--timeout', '300ms'];
  expect(await wait(daemon, ...options)).toMatchObject({ code: 3 });
});

it('reads the state again without news, as no event of its daemon may come', async () => {
  await using daemon = await FakeDaemon.start();
  daemon.set('nightly', RUNS);
  const now = vi.spyOn(performance, 'now');
  const waiting = wait(daemon, '--experiment', 'nightly');
  await read(daemon);
  daemon.set('nightly');
  now.mockReturnValue(performance.now() + 20_000);
  daemon.send('poll', { ok: true });
  expect(await waiting).toMatchObject({ code: 0 });
  now.mockRestore();
});

describe.concurrent('the report', () => {
  it('has a test case for each prompt, and nothing that XML does not allow', async () => {
    await using daemon = await FakeDaemon.start();
    const prompt = { experiment: 'a<b&"c"' };
    daemon.set(prompt.experiment, { prompts: { ...NONE, COMPLETED: 1, FAILED: 3, UNKNOWN: 1 } });
    const hostile = {
      error_id: '</failure>',
      error_msg: 'x\0\u001b[2J\ud800\uffff]]>'.repeat(9999),
    };
    daemon.addPrompt({ ...prompt, prompt_id: 'p1', prompt_name: 'good' });
    daemon.addPrompt({ ...prompt, prompt_id: 'p2', status: 'FAILED' }, hostile);
    daemon.addPrompt({ ...prompt, prompt_id: 'p3', status: 'FAILED' });
    daemon.addPrompt(
      { ...prompt, prompt_id: 'p4', status: 'FAILED' },
      { error_id: 'OLD', error_msg: 'old' },
    );
    daemon.failures.unshift({
      ...(daemon.failures[0] as (typeof daemon.failures)[0]),
      error_info: { error_id: 'NEW', error_msg: 'two\nlines' },
    });
    daemon.addPrompt({ ...prompt, prompt_id: 'p5', status: 'UNKNOWN', status_raw: 'ARCHIVED' });
    const folder = await mkdtemp(join(tmpdir(), 'evalwatch-'));
    const file = join(folder, 'report.xml');
    await writeFile(file, 'an earlier report');
    await using earlier = await open(file);

    const waited = await wait(daemon, '--experiment', prompt.experiment, '--junit', file);
    expect(waited.code).toBe(1);
    const xml = await readFile(file, 'utf8');
    expect(xml).not.toMatch(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]/);
    expect(xml.length).toBeLessThan(40_000);
    expect(await readdir(folder)).toEqual(['report.xml']);
    // Whoever reads the earlier one does not see a part of this one.
    expect(await earlier.readFile('utf8')).toBe('an earlier report');
    const suite = 'alpha/a&#60;b&#38;&#34;c&#34;';
    const lines = xml.split('\n');
    expect(lines[2]).toBe(
      `<testsuite name="${suite}" tests="5" failures="3" errors="1" skipped="0" time="2460">`,
    );
    const cases = lines.filter((line) => line.startsWith('<testcase '));
    const start = (id: string) => `<testcase classname="${suite}" name="${id}" time="0"`;
    expect(cases[0]).toContain(`${start('p2')}><failure type="&#60;/failure&#62;" message="`);
    expect(cases.slice(1)).toEqual([
      `${start('p3')}><failure type="FAILED" message="evalwatch has no error_info of it">evalwatch has no error_info of it</failure></testcase>`,
      `${start('p4')}><failure type="NEW" message="NEW: two\\nlines">NEW: two\\nlines</failure></testcase>`,
      `${start('p5')}><error type="UNKNOWN" message="unknown status ARCHIVED">unknown status ARCHIVED</error></testcase>`,
      `${start('good (p1)')}/>`,
    ]);
  });

  it('shows why there is no result, and prompts that have not finished', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly', RUNS);
    daemon.addPrompt({ experiment: 'nightly', status: 'RUNNING' });
    const file = join(await mkdtemp(join(tmpdir(), 'evalwatch-')), 'report.xml');
    const options = ['--experiment', 'nightly', '--timeout', '1s', '--junit', file];
    expect(await wait(daemon, ...options)).toMatchObject({ code: 3 });
    const xml = await readFile(file, 'utf8');
    expect(xml).toContain('<error type="RUNNING" message="not finished: RUNNING">');
    expect(xml).toContain(
      'name="evalwatch wait" time="0"><error type="wait" message="not finished within 1s">',
    );
  });

  it('is bounded', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly', { prompts: { ...NONE, COMPLETED: 20_001, FAILED: 1 } });
    for (let number = 0; number < 20_001; number += 1) daemon.addPrompt({ experiment: 'nightly' });
    daemon.addPrompt({ experiment: 'nightly', status: 'FAILED' });
    const file = join(await mkdtemp(join(tmpdir(), 'evalwatch-')), 'report.xml');
    await wait(daemon, '--experiment', 'nightly', '--junit', file);
    expect(await readFile(file, 'utf8')).toContain('tests="20000" failures="1" errors="0"');
  });
});

describe.concurrent('the usage', () => {
  it('sends the login of --user-file', async () => {
    await using daemon = await FakeDaemon.start();
    daemon.set('nightly');
    const file = join(await mkdtemp(join(tmpdir(), 'evalwatch-')), 'login');
    await writeFile(file, 'ci:pässword:2\n');
    expect(await wait(daemon, '--experiment', 'nightly', '--user-file', file)).toMatchObject({
      code: 0,
    });
    const sent = `Basic ${Buffer.from('ci:pässword:2').toString('base64')}`;
    expect(new Set(daemon.requests.map(({ headers }) => headers.authorization))).toEqual(
      new Set([sent]),
    );
  });

  it.each([
    [['--url', 'http://ci:hunter2@127.0.0.1:1/'], '--url must be'],
    [['--url', 'evalwatch:10570'], '--url must be'],
    [['--user-file', 'ci:hunter2'], '--user-file: there is no such file'],
    [['--experiment', ''], 'Prompts without an experiment'],
    [['--max-failure-ratio', '5'], 'It must be a number from 0 to 1'],
    [['--timeout', '2'], 'It must be a duration'],
    [['--junit', '/dev/null'], '--junit: cannot write /dev/null'],
    [['--junit', 'no/such/folder.xml'], '--junit: cannot write'],
  ])('refuses %o', async (options, message) => {
    const args = ['wait', '--url', 'http://127.0.0.1:1', '--project', 'alpha', ...options];
    const { code, stdout, stderr } = await commandLine(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('hunter2');
  });
});

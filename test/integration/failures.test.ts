import { describe, expect, it, vi } from 'vitest';
import {
  type ConfigurationChange,
  evalwatch,
  PATIENCE,
  startDaemon,
  UNHURRIED,
  workspace,
  type Workspace,
} from '../support/evalwatch.ts';
import { scrape } from '../support/scrape.ts';
import { errorOf, promptDetail, sendJson, startAlpha } from '../support/service.ts';

const MINUTE = 60_000;

/** A project whose prompts of these ids were RUNNING at its first poll and have failed since. */
async function failedSinceBaseline(ids: readonly string[], change: ConfigurationChange = {}) {
  const service = await startAlpha();
  const all = (status: string) => service.set(Object.fromEntries(ids.map((id) => [id, status])));
  all('RUNNING');
  const place = await workspace(service.url, { service: { retries: 0 }, ...change });
  await evalwatch(place, ['poll']);
  all('FAILED');
  return {
    service,
    place,
    [Symbol.asyncDispose]: async () => {
      await service[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    },
  };
}

/** Polls once, so long from now; the lines of failures that this logged. */
async function failureLines(place: Workspace, aheadMs = 0) {
  const lines = (await evalwatch(place, ['poll'], aheadMs)).lines();
  return lines.filter(({ event }) => event === 'prompt.failed');
}

describe('a failure', UNHURRIED, () => {
  it('is one error line with its error_info, and settled', async () => {
    const id = 'a/b c%2F"\u00e9';
    await using given = await failedSinceBaseline([id]);
    const { service, place } = given;
    await using daemon = startDaemon(place);
    const line = await daemon.line('prompt.failed');
    expect(line).toMatchObject({
      level: 'error',
      project: 'alpha',
      prompt_id: id,
      prompt_name: `name of ${id}`,
      error_info: errorOf(id),
      transition_id: expect.any(Number),
      cause: expect.stringMatching(/^[0-9a-f]{16}$/),
    });
    expect(line).not.toHaveProperty('error_msg_truncated');
    expect(line).not.toHaveProperty('reason');
    const transition = await daemon.line('prompt.transition', { to: 'FAILED' });
    expect(transition['transition_id']).toBe(line['transition_id']);
    await daemon.stop();
    expect(service.details().map(({ path }) => path)).toEqual([
      `/v2/prompts/${encodeURIComponent(id)}/`,
    ]);
    const { error_id, error_msg } = errorOf(id);
    expect((await evalwatch(place, ['failures', '--json'])).json()).toEqual([
      {
        transition_id: line['transition_id'],
        time: expect.any(String),
        project: 'alpha',
        prompt_id: id,
        prompt_name: `name of ${id}`,
        error_info: { error_id, error_msg },
        error_msg_truncated: false,
        reason: null,
        settled: true,
        cause: line['cause'],
      },
    ]);
  });

  it('has its error_msg cut at 8,192 bytes between characters', async () => {
    // Of each id the message, and the bytes of it that are kept.
    const messages: Readonly<Record<string, readonly [message: string, bytes: number]>> = {
      'just fits': ['é'.repeat(4096), 8192],
      'two bytes a character': ['é'.repeat(4097), 8192],
      three: ['€'.repeat(6000), 8190],
      four: ['😀'.repeat(6000), 8192],
      'one, then four': [`x${'😀'.repeat(6000)}`, 8189],
    };
    await using given = await failedSinceBaseline(Object.keys(messages));
    const { service, place } = given;
    for (const [id, [message]] of Object.entries(messages)) {
      const detail = promptDetail({ error_id: 'E', error_msg: message });
      service.answer(id, (_, response) => sendJson(response, detail));
    }
    const lines = await failureLines(place);
    expect(lines).toHaveLength(5);
    for (const line of lines) {
      const [message, bytes] = messages[String(line['prompt_id'])] ?? ['', 0];
      const { error_id: id, error_msg: cut } = line['error_info'] as ReturnType<typeof errorOf>;
      expect([id, Buffer.byteLength(cut)]).toEqual(['E', bytes]);
      expect(message.startsWith(cut)).toBe(true);
      expect(cut.isWellFormed()).toBe(true);
      expect(line['error_msg_truncated'] ?? false).toBe(cut !== message);
    }
  });

  it('of an id that no path can carry has none, and nothing is sent for it', async () => {
    await using given = await failedSinceBaseline(['.', '..', '...']);
    const { service, place } = given;
    const lines = await failureLines(place);
    const byId = lines.toSorted((a, b) =>
      String(a['prompt_id']) < String(b['prompt_id']) ? -1 : 1,
    );
    expect(byId).toMatchObject([
      { prompt_id: '.', error_info: null, reason: 'invalid_id' },
      { prompt_id: '..', error_info: null, reason: 'invalid_id' },
      { prompt_id: '...', error_info: errorOf('...') },
    ]);
    expect(service.details().map(({ path }) => path)).toEqual(['/v2/prompts/.../']);
  });

  it('that the service tells nothing of is given up after 3 tries over 5 minutes', async () => {
    // Of each reason the status and body of the answer.
    const answers: Readonly<Record<string, readonly [status: number, body: unknown]>> = {
      not_found: [404, { detail: 'Not Found' }],
      validation: [422, { detail: [] }],
      client_error: [410, {}],
      redirect: [307, {}],
      no_error_info: [200, promptDetail(null)],
      invalid_response: [206, {}],
      too_large: [200, promptDetail({ error_id: 'E', error_msg: 'x'.repeat(9000) })],
    };
    await using given = await failedSinceBaseline(Object.keys(answers), {
      service: { retries: 0, max_response_size: '8KiB' },
    });
    const { service, place } = given;
    for (const [id, [status, body]] of Object.entries(answers)) {
      service.answer(id, (_, response) => sendJson(response, body, status));
    }
    expect(await failureLines(place)).toEqual([]);
    expect(await failureLines(place, 2 * MINUTE)).toEqual([]);
    // The third try comes too early, the fourth is the last one.
    expect(await failureLines(place, 4 * MINUTE)).toEqual([]);
    const lines = await failureLines(place, 6 * MINUTE);
    expect(lines).toHaveLength(7);
    for (const line of lines) {
      const reason = line['prompt_id'];
      expect(line).toMatchObject({ level: 'error', error_info: null, reason });
    }
  });

  it('of a project out of the configuration is given up after 5 minutes', async () => {
    await using given = await failedSinceBaseline(['p1']);
    const { service, place } = given;
    service.answer('p1', (_, response) => sendJson(response, {}, 500));
    expect(await failureLines(place)).toEqual([]);
    await place.configure({ projects: [{ id: 'beta' }] });
    await evalwatch(place, ['poll']);
    await using daemon = startDaemon(place, { aheadMs: 6 * MINUTE });
    expect(await daemon.line('prompt.failed')).toMatchObject({
      project: 'alpha',
      error_info: null,
      reason: 'project_removed',
    });
    expect(service.details()).toHaveLength(1);
  });

  it('of a service that is down waits for it, and is given up after 24 h', async () => {
    await using given = await failedSinceBaseline(['p1', 'p2']);
    const { service, place } = given;
    service.answer('p1', (_, response) => sendJson(response, {}, 503));
    service.answer('p2', (_, response) => sendJson(response, {}, 403));
    expect(await failureLines(place)).toEqual([]);
    expect(await failureLines(place, 10 * MINUTE)).toEqual([]);
    expect(await failureLines(place, 23.9 * 60 * MINUTE)).toEqual([]);
    // The one that can be had after all is not lost.
    service.answer('p2', (_, response) => sendJson(response, promptDetail(errorOf('p2'))));
    const lines = await failureLines(place, 24.1 * 60 * MINUTE);
    expect(lines).toHaveLength(2);
    expect(lines).toContainEqual(
      expect.objectContaining({ prompt_id: 'p1', error_info: null, reason: 'unavailable' }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({ prompt_id: 'p2', error_info: errorOf('p2') }),
    );
  });

  it('is tried by poll whether it is due or not', async () => {
    await using given = await failedSinceBaseline(['p1']);
    const { service, place } = given;
    service.answer('p1', (_, response) => sendJson(response, {}, 500));
    expect(await failureLines(place)).toEqual([]);
    expect(await failureLines(place)).toEqual([]);
    service.answer('p1', (_, response) => sendJson(response, promptDetail(errorOf('p1'))));
    expect(await failureLines(place)).toMatchObject([{ error_info: errorOf('p1') }]);
    expect(service.details()).toHaveLength(3);
  });

  it('is in the backlog until its line is written', async () => {
    await using given = await failedSinceBaseline(['p1']);
    const { service, place } = given;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    service.answer('p1', async (_, response) => {
      await released;
      sendJson(response, promptDetail(errorOf('p1')));
    });
    await using daemon = startDaemon(place);
    const { time } = await daemon.line('prompt.transition');
    const url = await daemon.url();
    const backlog = async () => {
      const seen = await scrape(url);
      return [
        seen.value('evalwatch_error_info_backlog'),
        seen.value('evalwatch_error_info_backlog_oldest_timestamp_seconds'),
      ] as const;
    };
    const [count, oldest = 0] = await backlog();
    expect(count).toBe(1);
    expect(Math.abs(oldest - Date.parse(time) / 1000)).toBeLessThan(1);
    expect(daemon.of('prompt.failed')).toEqual([]);
    release();
    await daemon.line('prompt.failed');
    await vi.waitFor(async () => expect(await backlog()).toEqual([0, undefined]), PATIENCE);
  });

  it('of a baseline is a gauge and no event', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'FAILED' });
    await using place = await workspace(service.url);
    await using daemon = startDaemon(place);
    await daemon.line('project.baseline');
    service.set({ p2: 'FAILED' });
    await daemon.line('prompt.failed', { prompt_id: 'p2' });
    await daemon.stop();
    expect(daemon.of('prompt.failed')).toHaveLength(1);
    expect(daemon.of('prompt.transition')).toMatchObject([{ from: 'NEW', to: 'FAILED' }]);
    expect((await evalwatch(place, ['failures', '--json'])).json()).toHaveLength(1);
  });
});

import { describe, expect, it, vi } from 'vitest';
import { readHere, startHere } from '../support/daemon-here.ts';
import {
  type ConfigurationChange,
  runCommand,
  PATIENCE,
  UNHURRIED,
  workspace,
  type Workspace,
} from '../support/evalwatch.ts';
import { scrape } from '../support/scrape.ts';
import { errorOf, promptDetail, sendJson, startAlpha } from '../support/service.ts';

const MINUTE = 60_000;

/** Sets up a project whose prompts with these ids were RUNNING at its first poll and have failed since. */
async function failedSinceBaseline(ids: readonly string[], change: ConfigurationChange = {}) {
  const service = await startAlpha();
  const all = (status: string) => service.set(Object.fromEntries(ids.map((id) => [id, status])));
  all('RUNNING');
  const place = await workspace(service.url, { service: { retries: 0 }, ...change });
  await using daemon = await startHere(place);
  await daemon.line('project.baseline');
  await daemon.stop();
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

/** Polls once. Returns the lines of failures. */
async function failureLines(place: Workspace) {
  const lines = (await runCommand(place, ['poll'])).lines();
  return lines.filter(({ event }) => event === 'prompt.failed');
}

describe('the failure of a prompt', UNHURRIED, () => {
  it('is logged in one error line with its error_info and then settled', async () => {
    const id = 'a/b c%2F"\u00e9';
    await using given = await failedSinceBaseline([id]);
    const { service, place } = given;
    await using daemon = await startHere(place);
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
    expect((await readHere(place, ['failures', '--json'])).json()).toEqual([
      {
        transition_id: line['transition_id'],
        time: expect.any(String),
        project: 'alpha',
        prompt_id: id,
        prompt_name: `name of ${id}`,
        experiment: null,
        error_info: { error_id, error_msg },
        error_msg_truncated: false,
        reason: null,
        settled: true,
        cause: line['cause'],
      },
    ]);
  });

  it('is logged with a reason instead of error_info after 3 useless responses', async () => {
    // Status and body of the response for each reason.
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
    /** Tries all of them, with the clock ahead. Returns the lines of failures. */
    const tryAgain = async (aheadMs: number) => {
      const asked = service.details().length + Object.keys(answers).length;
      await using daemon = await startHere(place, { aheadMs });
      await vi.waitFor(() => expect(service.details()).toHaveLength(asked), PATIENCE);
      await daemon.stop();
      return daemon.of('prompt.failed');
    };
    expect(await tryAgain(0)).toEqual([]);
    expect(await tryAgain(2 * MINUTE)).toEqual([]);
    const lines = await tryAgain(10 * MINUTE);
    expect(lines).toHaveLength(7);
    for (const line of lines) {
      const reason = line['prompt_id'];
      expect(line).toMatchObject({ level: 'error', error_info: null, reason });
    }
  });

  it('is retried by the poll command even if it is not due', async () => {
    await using given = await failedSinceBaseline(['p1']);
    const { service, place } = given;
    service.answer('p1', (_, response) => sendJson(response, {}, 500));
    expect(await failureLines(place)).toEqual([]);
    service.answer('p1', (_, response) => sendJson(response, promptDetail(errorOf('p1'))));
    expect(await failureLines(place)).toMatchObject([{ error_info: errorOf('p1') }]);
    expect(service.details()).toHaveLength(2);
  });

  it('counts in the error_info backlog until its line is written', async () => {
    await using given = await failedSinceBaseline(['p1']);
    const { service, place } = given;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    service.answer('p1', async (_, response) => {
      await released;
      sendJson(response, promptDetail(errorOf('p1')));
    });
    const startedAt = Date.now() / 1000;
    await using daemon = await startHere(place);
    await daemon.line('prompt.transition');
    const url = await daemon.url();
    const backlog = async () => {
      const seen = await scrape(url);
      return [
        seen.value('evalwatch_error_info_backlog'),
        seen.value('evalwatch_error_info_backlog_oldest_timestamp_seconds'),
        seen.value('evalwatch_poll_last_success_timestamp_seconds', { project: 'alpha' }),
      ] as const;
    };
    const [count, oldest = 0, polledAt] = await backlog();
    expect(count).toBe(1);
    expect(oldest).toBeGreaterThanOrEqual(startedAt);
    expect(oldest).toBeLessThanOrEqual(polledAt ?? 0);
    expect(daemon.of('prompt.failed')).toEqual([]);
    release();
    await daemon.line('prompt.failed');
    await vi.waitFor(
      async () => expect((await backlog()).slice(0, 2)).toEqual([0, undefined]),
      PATIENCE,
    );
  });

  it('is not reported if the prompt was FAILED in the baseline', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'FAILED' });
    await using place = await workspace(service.url);
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    service.set({ p2: 'FAILED' });
    await daemon.line('prompt.failed', { prompt_id: 'p2' });
    await daemon.stop();
    expect(daemon.of('prompt.failed')).toHaveLength(1);
    expect(daemon.of('prompt.transition')).toMatchObject([{ from: 'NEW', to: 'FAILED' }]);
    expect((await readHere(place, ['failures', '--json'])).json()).toHaveLength(1);
  });
});

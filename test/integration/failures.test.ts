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
});

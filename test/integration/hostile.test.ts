import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  type Daemon,
  evalwatch,
  type Finished,
  KEY,
  PATIENCE,
  sleep,
  startDaemon,
  UNHURRIED,
  workspace,
  type Workspace,
} from '../support/evalwatch.ts';
import { HOSTILITIES, LIMIT_BYTES, nested } from '../support/hostile-answers.ts';
import { scrape, type Scrape } from '../support/scrape.ts';
import { promptItem, startService, type Service } from '../support/service.ts';

const SECONDS = 8;
const MEBIBYTE = 1024 * 1024;
const KINDS = Object.keys(HOSTILITIES);
const healthy = { project: 'healthy' };

describe('among hostile services', () => {
  let service: Service;
  let place: Workspace;
  let daemon: Daemon;
  let begin: Scrape;
  let end: Scrape;
  let endedAt: number;
  let status: Finished;

  beforeAll(async () => {
    service = await startService((arrival, response) => {
      const { project = '', headers } = arrival;
      const key = String(headers['x-api-key']);
      const hostility = HOSTILITIES[project];
      if (hostility !== undefined) {
        hostility.answer(response, key, arrival);
        return;
      }
      // The key in every text of an item, and as an id.
      const items = [promptItem('good', 'RUNNING'), { ...promptItem('echo', key), name: key }];
      response.writeHead(200, { etag: `"${key}"`, 'x-echo': key });
      response.end(JSON.stringify([...items, promptItem(key, 'RUNNING')]));
    });
    place = await workspace(service.url, {
      service: { timeout: '1500ms', retries: 1, max_response_size: `${LIMIT_BYTES / 1024}KiB` },
      log: { level: 'debug' },
      projects: [...KINDS, 'healthy'].map((id) => ({ id })),
    });
    daemon = startDaemon(place);
    const url = await daemon.url();
    // What was never polled may hold others up, so the first round does not count.
    begin = await vi.waitFor(async () => {
      const seen = await scrape(url);
      const polls = seen.families.get('evalwatch_polls_total')?.samples.values() ?? [];
      if ([...polls].includes(0)) throw new Error('not every project has been polled');
      return seen;
    }, PATIENCE);
    await sleep(SECONDS * 1000);
    end = await scrape(url);
    endedAt = performance.now();
    await daemon.stop();
    status = await evalwatch(place, ['status', '--json']);
  }, UNHURRIED.timeout);

  afterAll(async () => {
    await daemon?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
    await place?.[Symbol.asyncDispose]();
  });

  it.each(KINDS)('%s fails a poll for the right reason', (project) => {
    const { reason } = HOSTILITIES[project] ?? {};
    const failures = [...end.samples]
      .filter(([name, value]) => name.startsWith(failuresOf(project)) && value > 0)
      .map(([name]) => /reason="(\w+)"/.exec(name)?.[1]);
    expect(failures).toEqual([reason]);
    const polls = end.value('evalwatch_polls_total', { project });
    expect(end.value('evalwatch_poll_failures_total', { project, reason: reason ?? '' })).toBe(
      polls,
    );
    expect(end.value('evalwatch_project_up', { project })).toBe(0);
    expect(daemon.lines).toContainEqual(
      expect.objectContaining({ event: 'poll.failed', level: 'error', project, reason }),
    );
  });

  it('stores nothing of theirs', () => {
    const rows = status.json().filter(({ project }) => project !== 'healthy');
    expect(rows).toEqual([]);
    for (const project of KINDS) {
      const prompts = [...end.samples].filter(([name]) =>
        name.startsWith(`evalwatch_prompts{project="${project}"`),
      );
      expect(prompts.filter(([, value]) => value !== 0)).toEqual([]);
      expect(
        end.value('evalwatch_poll_last_success_timestamp_seconds', { project }),
      ).toBeUndefined();
    }
  });

  it('polls the healthy project on time', () => {
    const polls = (seen: Scrape) => seen.value('evalwatch_polls_total', healthy) ?? 0;
    // A second of slack at either end, and two for a machine that was busy elsewhere.
    expect(polls(end) - polls(begin)).toBeGreaterThanOrEqual(SECONDS - 3);
    const times = service.of('healthy').map(({ at }) => at);
    const counted = [...times.filter((at) => at > endedAt - SECONDS * 1000), endedAt];
    const gaps = counted.slice(1).map((at, index) => at - (counted[index] ?? at));
    expect(Math.max(...gaps)).toBeLessThan(4000);
    expect(end.value('evalwatch_project_up', healthy)).toBe(1);
    const reason = { reason: 'invalid' };
    expect(end.value('evalwatch_item_anomalies_total', { ...healthy, ...reason })).toBe(polls(end));
  });

  it('never follows a redirect', () => {
    expect(service.of('stolen')).toEqual([]);
    const failed = daemon.of('poll.failed').find(({ project }) => project === 'redirect elsewhere');
    expect(failed?.['location']).toMatch(
      /^http:\/\/127\.0\.0\.1:\d+\/v2\/projects\/stolen\/prompts\/\?key=/,
    );
  });

  it('logs what a 422 complains of', () => {
    const line = daemon.of('poll.failed').find(({ project }) => project === '422');
    expect(JSON.stringify(line?.['detail'])).toContain('wrong key');
  });

  it('asks no more where it was told to come back much later', () => {
    for (const project of ['429, come back in an hour', '503, come back in 4 minutes']) {
      expect(service.of(project)).toHaveLength(1);
      expect(end.value('evalwatch_polls_total', { project })).toBeGreaterThan(SECONDS / 2);
    }
  });

  it('keeps within its memory', () => {
    const memory = (seen: Scrape) => seen.value('process_resident_memory_bytes') ?? 0;
    expect(memory(end)).toBeLessThan(400 * MEBIBYTE);
    expect(memory(end) - memory(begin)).toBeLessThan(100 * MEBIBYTE);
  });

  it('tells the key to nobody', async () => {
    expect(service.arrivals.every(({ headers }) => headers['x-api-key'] === KEY)).toBe(true);
    const { stderr } = await daemon.ended;
    const [transitions, failures] = await Promise.all(
      ['transitions', 'failures'].map((command) => evalwatch(place, [command, '--json'])),
    );
    const told = [daemon.stdout(), stderr, end.text, status.stdout];
    told.push(transitions?.stdout ?? '', failures?.stdout ?? '');
    const files = (await readdir(place.directory)).filter((name) => name.includes('.db'));
    expect(files).toContain('evalwatch.db');
    const stored = await Promise.all(
      files.map((name) => readFile(join(place.directory, name), 'latin1')),
    );
    expect([...told, ...stored].filter((text) => text.includes(KEY))).toEqual([]);
    expect(status.json()).toMatchObject([
      { project: 'healthy', prompt_id: 'echo', status: 'UNKNOWN' },
      { project: 'healthy', prompt_id: 'good', status: 'RUNNING' },
    ]);
  });
});

describe('the limits themselves', UNHURRIED, () => {
  it.each([
    ['a list nested 64 deep', nested(64)],
    ['a list of the largest size', nested(3).padEnd(LIMIT_BYTES)],
  ])('%s is read', async (_, text) => {
    await using good = await startService((__, response) => void response.end(text));
    await using where = await workspace(good.url, {
      service: { max_response_size: `${LIMIT_BYTES / 1024}KiB` },
    });
    const { code, json } = await evalwatch(where, ['poll', '--json']);
    expect(code).toBe(0);
    expect(json()).toMatchObject([{ project: 'alpha', ok: true, reason: null, prompts: 1 }]);
  });
});

function failuresOf(project: string): string {
  return `evalwatch_poll_failures_total{project="${project}"`;
}

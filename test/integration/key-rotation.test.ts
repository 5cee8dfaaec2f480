import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import { KEY, PATIENCE, sleep, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { scrape } from '../support/scrape.ts';
import { promptItem, sendJson, startAlpha, startService } from '../support/service.ts';

const ROTATIONS = 100;
const PROJECTS = Array.from({ length: 8 }, (_, n) => ({ id: `project-${n}`, datasets: true }));
/** Delay before the service checks a key, so that requests overlap with rotations. */
const THINKING_MS = 40;
/** Pause between the two halves of a rotation. */
const GAP_MS = 5;

/** Starts a service that accepts one key only and counts the refusals that a client could have avoided. */
async function startStrict() {
  let valid = KEY;
  let onDisk = KEY;
  /** Paths refused although the file held the valid key, until they are requested with it. */
  const owed = new Set<string>();
  const seen = { accepted: 0, excusable: 0, avoidable: 0 };
  const service = await startService(async ({ path, headers }, response) => {
    await sleep(THINKING_MS);
    const key = String(headers['x-api-key']);
    if (key === valid) {
      owed.delete(path);
      seen.accepted += 1;
      sendJson(response, [promptItem('p', 'RUNNING')]);
      return;
    }
    if (onDisk === valid) {
      owed.add(path);
      seen.avoidable += 1;
    } else {
      seen.excusable += 1;
    }
    sendJson(response, { detail: `${key} is not valid` }, 401);
  });
  return Object.assign(service, {
    seen,
    owed,
    accept: (key: string) => {
      valid = key;
    },
    noteOnDisk: (key: string) => {
      onDisk = key;
    },
  });
}

describe('an API key', UNHURRIED, () => {
  it.each([
    ['in its file first', ['file', 'service'], 'by renaming'],
    ['at the service first', ['service', 'file'], 'in place'],
  ])(
    `replaced ${ROTATIONS} times under load, %s, fails no poll once both sides have the new key`,
    { timeout: 240_000 },
    async (_, order, manner) => {
      await using service = await startStrict();
      await using place = await workspace(service.url, { projects: PROJECTS });
      await using daemon = await startHere(place);
      await daemon.line('project.baseline', { project: 'project-7' });
      const file = join(place.directory, 'key');
      const keys = Array.from({ length: ROTATIONS }, (_key, n) => `rotated/key+number-${n}`);

      const steps = {
        service: service.accept,
        file: (key: string) => {
          const written = manner === 'in place' ? file : `${file}.new`;
          writeFileSync(written, key);
          if (written !== file) renameSync(written, file);
          service.noteOnDisk(key);
        },
      };
      for (const key of keys) {
        for (const step of order) {
          steps[step as keyof typeof steps](key);
          await sleep(GAP_MS);
        }
        await sleep(2 * THINKING_MS);
        // A refused request is repeated within its poll, and the next rotation must not interfere with that.
        await vi.waitFor(() => expect(service.owed).toEqual(new Set()), PATIENCE);
      }
      const { accepted, avoidable, excusable } = service.seen;
      const after = await scrape(await daemon.url());
      const failures = [...after.samples]
        .filter(([series]) => series.startsWith('evalwatch_poll_failures_total{'))
        .reduce((sum, [, count]) => sum + count, 0);

      expect(avoidable).toBeGreaterThan(0);
      expect(accepted).toBeGreaterThan(PROJECTS.length * 2);
      expect(failures).toBeLessThanOrEqual(excusable);
      const said = daemon.stdout() + after.text;
      for (const key of [KEY, ...keys]) expect(said).not.toContain(key);
    },
  );

  it.each([
    ['missing', (file: string) => rmSync(file), 'cannot be read: there is no such file'],
    ['empty', (file: string) => writeFileSync(file, ''), 'is empty'],
  ])('whose file is %s fails the poll with the cause, and recovers', async (_, spoil, words) => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    const file = join(place.directory, 'key');

    spoil(file);
    const line = await daemon.line('poll.failed');
    expect(line).toMatchObject({
      reason: 'auth',
      err: { message: `the key file ${file} ${words}` },
    });

    writeFileSync(file, KEY);
    await daemon.line('poll.recovered');
  });
});

it('no stored text has a key if 300 projects have keys of their own, and no listing is requested twice', async () => {
  const ids = Array.from({ length: 300 }, (_, n) => `project-${n}`);
  const requests = new Map<string, number>();
  await using service = await startService(({ path, headers }, response) => {
    const count = (requests.get(path) ?? 0) + 1;
    requests.set(path, count);
    const name = `of ${String(headers['x-api-key'])}, listed ${count} times`;
    sendJson(response, [{ ...promptItem('p', 'RUNNING'), name }]);
  });
  await using place = await workspace(service.url, {
    schedule: '*/3 * * * * *',
    projects: ids.map((id) => ({ id, api_key_file: id })),
  });
  for (const id of ids) writeFileSync(join(place.directory, id), `key-of-its-own-of-${id}`);
  await using daemon = await startHere(place);
  await vi.waitFor(() => {
    expect(
      Math.min(...ids.map((id) => requests.get(`/v2/projects/${id}/prompts/`) ?? 0)),
    ).toBeGreaterThan(2);
  }, PATIENCE);
  const { samples } = await scrape(await daemon.url());
  await daemon.stop();

  const retries = [...samples].filter(([series]) => series.includes('_retries_total'));
  expect(retries.length).toBeGreaterThan(0);
  expect(retries.filter(([, count]) => count > 0)).toEqual([]);
  const files = readdirSync(place.directory).filter((name) => name.startsWith('evalwatch.db'));
  const stored = files.map((name) => readFileSync(join(place.directory, name), 'latin1')).join('');
  expect(stored.includes('of [redacted], listed')).toBe(true);
  expect(stored.match(/key-of-its-own/g)).toBeNull();
  expect(daemon.stdout()).not.toContain('key-of-its-own');
});

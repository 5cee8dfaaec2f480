import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import { KEY, PATIENCE, startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { scrape } from '../support/scrape.ts';
import { promptItem, sendJson, startAlpha, startService } from '../support/service.ts';

const PROJECTS = Array.from({ length: 8 }, (_, n) => ({ id: `project-${n}` }));

/** Starts a service that accepts one key only. It checks a first request when `release` is called, a repeated one at once. */
async function startStrict() {
  let valid = KEY;
  const held: (() => void)[] = [];
  /** Paths that were refused, until they are requested with the valid key. */
  const owed = new Set<string>();
  const seen = { accepted: 0, refused: 0 };
  const service = await startService(async ({ path, headers }, response) => {
    if (!owed.has(path)) await new Promise<void>((resolve) => void held.push(resolve));
    const key = String(headers['x-api-key']);
    if (key === valid) {
      owed.delete(path);
      seen.accepted += 1;
      sendJson(response, [promptItem('p', 'RUNNING')]);
    } else {
      owed.add(path);
      seen.refused += 1;
      sendJson(response, { detail: `${key} is not valid` }, 401);
    }
  });
  return Object.assign(service, {
    seen,
    accept: (key: string) => {
      valid = key;
    },
    /** Waits until every project has a request here. */
    full: () => vi.waitFor(() => expect(held).toHaveLength(PROJECTS.length), PATIENCE),
    release: () => {
      for (const check of held.splice(0)) check();
    },
  });
}

describe('an API key', UNHURRIED, () => {
  it.each([
    ['in its file first', ['file', 'service'], 'by renaming'],
    ['at the service first', ['service', 'file'], 'in place'],
  ])(
    'replaced five times under load, %s, fails no poll once both sides have the new key',
    async (_, order, manner) => {
      await using service = await startStrict();
      await using place = await workspace(service.url, {
        service: { max_concurrency: 100 },
        projects: PROJECTS,
      });
      await using daemon = await startHere(place);
      const file = join(place.directory, 'key');
      const keys = Array.from({ length: 5 }, (_key, n) => `rotated/key+number-${n}`);

      const steps = {
        service: service.accept,
        file: (key: string) => {
          const written = manner === 'in place' ? file : `${file}.new`;
          writeFileSync(written, key);
          if (written !== file) renameSync(written, file);
        },
      };
      for (const key of keys) {
        // All of them were sent with the old key, and are checked against the new one.
        await service.full();
        for (const step of order) steps[step as keyof typeof steps](key);
        service.release();
      }
      await service.full();
      const after = await scrape(await daemon.url());
      const failures = [...after.samples].filter(
        ([series, count]) => series.startsWith('evalwatch_poll_failures_total{') && count > 0,
      );

      expect(failures).toEqual([]);
      const requests = keys.length * PROJECTS.length;
      expect(service.seen).toEqual({ accepted: requests, refused: requests });
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

/** Time that each connection takes. Longer than the 250 ms that Node gives every address of a name but the last. */
const CONNECT_MS = 300;
/** Gives every name two addresses. Only the first one is listened on, and connections take {@link CONNECT_MS}. */
const NETWORK = `
  import dns from 'node:dns';
  dns.lookup = (name, options, callback) => {
    const found = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
    process.nextTick(() => options.all ? callback(null, found) : callback(null, '127.0.0.1', 4));
  };
  const { TCP } = process.binding('tcp_wrap');
  const { connect, close } = TCP.prototype;
  const closed = new WeakSet();
  TCP.prototype.connect = function (...args) {
    setTimeout(() => closed.has(this) || connect.apply(this, args), ${CONNECT_MS});
    return 0;
  };
  TCP.prototype.close = function (...args) {
    closed.add(this);
    return close.apply(this, args);
  };`;

it(
  'a service whose name has several addresses is reached over a slow network',
  UNHURRIED,
  async () => {
    await using service = await startService((_, response) => sendJson(response, []));
    const named = service.url.replace('127.0.0.1', 'service.invalid');
    await using place = await workspace(named, { service: { allow_http: true } });
    await using daemon = startDaemon(place, {
      env: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(NETWORK)}` },
    });
    await daemon.line('project.baseline');
    expect(daemon.of('poll.failed')).toEqual([]);
  },
);

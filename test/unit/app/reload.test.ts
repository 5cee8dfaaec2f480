import { describe, expect, it, vi } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import { ConfigError } from '../../../src/config/config-error.ts';
import type { Logger } from '../../../src/log/logger.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { createReload } from '../../../src/app/reload.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

const CONFIG = { store: {}, web: {}, projects: [] } as unknown as Config;

function reloadThatThrows(error: unknown) {
  const lines: unknown[] = [];
  const bugs: unknown[] = [];
  const results: boolean[] = [];
  const log = (fields: { readonly event?: unknown }) => void lines.push(fields.event);
  const reload = createReload({
    config: () => CONFIG,
    loadConfig: async () => CONFIG,
    logger: { info: log, error: log } as unknown as Logger,
    apply: async () => {
      throw error;
    },
    onResult: ({ ok }) => results.push(ok),
    onError: (bug) => bugs.push(bug),
  });
  return { reload, lines, bugs, results };
}

it.each([
  new StoreError('io', 'the disk is gone'),
  new ConfigError('invalid', [{ file: 'f', line: 1, column: 2, message: 'no' }]),
])('a failed reload returns and logs its reason: %s', async (error) => {
  const { reload, lines, bugs, results } = reloadThatThrows(error);
  expect(await reload.run()).toEqual({ ok: false, reasons: [error.message] });
  expect([lines, bugs, results]).toEqual([['config.reload_failed'], [], [false]]);
});

it('an unexpected error in a reload is rethrown, not logged as a failed reload', async () => {
  const bug = new TypeError('a bug');
  const { reload, lines, bugs } = reloadThatThrows(bug);
  await expect(reload.run()).rejects.toBe(bug);
  expect([lines, bugs]).toEqual([[], [bug]]);
});

it('reloads that wait for another one share the next', async () => {
  const reads: PromiseWithResolvers<Config>[] = [];
  const reload = createReload({
    config: () => CONFIG,
    loadConfig: () => {
      const read = Promise.withResolvers<Config>();
      reads.push(read);
      return read.promise;
    },
    logger: { info: () => {}, error: () => {} } as unknown as Logger,
    apply: async () => {},
    onResult: () => {},
    onError: () => {},
  });
  const first = reload.run();
  await vi.waitFor(() => expect(reads).toHaveLength(1), PATIENCE);
  const waiting = Array.from({ length: 30 }, () => reload.run());
  reads[0]?.resolve(CONFIG);
  expect(await first).toEqual({ ok: true, reasons: [] });
  await vi.waitFor(() => expect(reads).toHaveLength(2), PATIENCE);
  reads[1]?.reject(new ConfigError('invalid', [{ file: 'f', line: 1, column: 2, message: 'no' }]));

  const results = await Promise.all(waiting);
  expect(new Set(results.map(({ ok }) => ok))).toEqual(new Set([false]));
  expect(reads).toHaveLength(2);
});

describe('a reload of watched files', () => {
  const bad = new ConfigError('invalid', [{ file: 'f', line: 1, column: 2, message: 'no' }]);
  const now = (content: string) => ({ content, isWanted: async () => true });

  it('logs a failure once for each content, and again on request', async () => {
    const { reload, lines, results } = reloadThatThrows(bad);
    await reload.runWatched(now('a'));
    await reload.runWatched(now('a'));
    expect(lines).toHaveLength(1);
    await reload.runWatched(now('b'));
    expect(lines).toHaveLength(2);
    await reload.run();
    expect(lines).toHaveLength(3);
    await reload.runWatched(now('b'));
    expect(lines).toHaveLength(3);
    expect(results).toHaveLength(5);
    expect(reload.hasFailed()).toBe(true);
  });

  it('does nothing if they changed while they were read', async () => {
    const { reload, lines, results } = reloadThatThrows(bad);
    await reload.runWatched({ content: 'a', isWanted: async () => false });
    expect([lines, results, reload.hasFailed()]).toEqual([[], [], false]);
  });
});

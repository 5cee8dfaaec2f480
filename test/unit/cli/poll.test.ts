import { beforeEach, expect, it, vi } from 'vitest';
import { openEngine, type Engine } from '../../../src/app/engine.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { commandLine } from '../../support/command-line.ts';
import { temporaryDirectory, writeConfiguration } from './configuration-file.ts';

vi.mock(import('../../../src/app/engine.ts'));

let config: string;
beforeEach(() => {
  config = writeConfiguration(temporaryDirectory(), [{ id: 'beta' }]);
});

/** Runs `poll` with an engine whose polls are refused, because this process loses the project, which had no owner. */
function pollWhile(
  ownerAfterwards: () => Promise<string | undefined>,
  change: Partial<Engine> = {},
) {
  const ownerOf = vi.fn<Engine['ownerOf']>(ownerAfterwards).mockResolvedValueOnce(undefined);
  const engine: Partial<Engine> = {
    sharing: undefined,
    ownerOf,
    configure: async () => {},
    poll: async () => undefined,
    mayPoll: () => false,
    reporter: { drain: async () => {} } as unknown as Engine['reporter'],
    close: async () => {},
    ...change,
  };
  vi.mocked(openEngine).mockResolvedValue(engine as Engine);
  return commandLine(['poll', '--json', '--config', config]);
}

it('poll names the worker that took over a project in the meantime', async () => {
  const { code, stdout, stderr } = await pollWhile(async () => 'w2');
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject([{ project: 'beta', ok: false, reason: 'not_owned' }]);
  expect(stderr).toBe(
    'error: project "beta" was not polled: worker w2 took it over and polls it now\n',
  );
});

it.each([
  ['nobody owns', async () => undefined],
  [
    'a store that does not answer cannot tell the owner of',
    async () => {
      throw new StoreError('io', 'it does not answer');
    },
  ],
])('poll names no owner of a lost project that %s', async (_, ownerAfterwards) => {
  const { code, stdout, stderr } = await pollWhile(ownerAfterwards);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject([{ project: 'beta', ok: false, reason: 'not_owned' }]);
  expect(stderr).toBe(
    'error: project "beta" was not polled: this process lost it, because its lease ran out, the database did not answer or another process claimed it; run the command again\n',
  );
});

it('poll reports a project that other processes committed first', async () => {
  const { code, stdout, stderr } = await pollWhile(async () => undefined, { mayPoll: () => true });
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject([{ project: 'beta', ok: false, reason: 'outdated' }]);
  expect(stderr).toBe(
    'error: project "beta" was not polled: other processes committed it first each time; run the command again\n',
  );
});

it('poll prints its rows, and exits with 1, if failures cannot be read', async () => {
  const drain = () => Promise.reject(new StoreError('other', 'it cannot be read'));
  const { code, stdout, stderr } = await pollWhile(async () => 'w2', {
    reporter: { drain } as unknown as Engine['reporter'],
  });
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject([{ project: 'beta' }]);
  expect(stderr).toContain('error: it cannot be read');
});

it('poll reports an unexpected error as a bug, not as an unavailable store', async () => {
  const { code, stdout, stderr } = await pollWhile(async () => {
    throw new TypeError('a bug');
  });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^error: unexpected, .*TypeError: a bug\n$/);
});

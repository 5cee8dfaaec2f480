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

/** Runs `poll` with an engine whose poll ends like this. */
function pollWith(poll: Engine['poll'], drain: () => Promise<void> = async () => {}) {
  const engine: Partial<Engine> = {
    configure: async () => {},
    poll,
    reporter: { drain } as unknown as Engine['reporter'],
    close: async () => {},
  };
  vi.mocked(openEngine).mockResolvedValue(engine as Engine);
  return commandLine(['poll', '--json', '--config', config]);
}

it('poll prints its rows, and exits with 1, if failures cannot be read', async () => {
  const finished = { project: 'beta', prompts: 1, transitions: 0, durationMs: 2 };
  const { code, stdout, stderr } = await pollWith(
    async () => finished as never,
    () => Promise.reject(new StoreError('other', 'it cannot be read')),
  );
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject([{ project: 'beta', ok: true }]);
  expect(stderr).toContain('error: it cannot be read');
});

it('poll reports an unexpected error as a bug, not as an unavailable store', async () => {
  const { code, stdout, stderr } = await pollWith(async () => {
    throw new TypeError('a bug');
  });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^error: unexpected, .*TypeError: a bug\n$/);
});

it('poll says how to let a daemon poll if the store is in PostgreSQL', async () => {
  const store = { postgres_url_env: 'DATABASE' };
  vi.stubEnv('DATABASE', 'postgresql://user@127.0.0.1:1/none');
  config = writeConfiguration(temporaryDirectory(), [{ id: 'beta' }], { store });
  const { code, stdout, stderr } = await commandLine(['poll', '--config', config]);
  vi.unstubAllEnvs();
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toBe(
    'error: poll needs a SQLite store, but the configuration names PostgreSQL: let a daemon poll: ' +
      "set web.enable_lifecycle to true, reload, then run on its machine: curl -X POST 'http://127.0.0.1:10570/-/poll'\n",
  );
});

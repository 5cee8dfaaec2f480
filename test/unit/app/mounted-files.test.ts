import { expect, it } from 'vitest';
import type { Mounts } from '../../../src/files/mounts.ts';
import { createLogger } from '../../../src/log/logger.ts';
import { watchMountedFiles } from '../../../src/app/mounted-files.ts';

const [CONFIG, KEY] = ['/etc/evalwatch/evalwatch.yaml', '/run/secrets/key'];

function setUp(mounts: Readonly<Record<string, string>>) {
  const lines: { readonly event: string; readonly paths: readonly string[] }[] = [];
  const logger = createLogger({
    level: 'info',
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
    onFatalError: () => {},
  });
  let current: Mounts = new Map(Object.entries(mounts));
  const files = watchMountedFiles({ logger, read: async () => current });
  return {
    files,
    mount: (next: Readonly<Record<string, string>>) => {
      current = new Map(Object.entries(next));
    },
    said: () => lines.splice(0).map(({ event, paths }) => [event, ...paths]),
  };
}

it('single-file mounts are logged once', async () => {
  const { files, said } = setUp({ '/': '/', [CONFIG]: '/srv/my.yaml', '/run/secrets': '/srv' });
  expect(files.hasAny()).toBe(false);
  expect(await files.check([CONFIG, KEY])).toEqual([]);
  expect(await files.check([CONFIG, KEY])).toEqual([]);
  expect(said()).toEqual([['config.file_mounted', CONFIG]]);
  expect(files.hasAny()).toBe(true);
});

it.each([
  ['deleted', '/srv/my.yaml//deleted'],
  ['moved out of the way', '/srv/my.yaml~'],
])('a mounted file that was %s on the host is logged once as replaced', async (_, source) => {
  const { files, mount, said } = setUp({ [CONFIG]: '/srv/my.yaml', [KEY]: '/srv/key' });
  await files.check([CONFIG, KEY]);
  mount({ [CONFIG]: source, [KEY]: '/srv/key' });
  expect(await files.check([CONFIG, KEY])).toEqual([CONFIG]);
  expect(await files.check([CONFIG, KEY])).toEqual([CONFIG]);
  expect(said()).toEqual([
    ['config.file_mounted', CONFIG, KEY],
    ['config.file_replaced', CONFIG],
  ]);
});

it('a mounted file whose directory was renamed on the host is logged once as moved', async () => {
  const { files, mount, said } = setUp({ [CONFIG]: '/srv/my.yaml' });
  await files.check([CONFIG]);
  mount({ [CONFIG]: '/srv-2/my.yaml' });
  expect(await files.check([CONFIG])).toEqual([]);
  expect(await files.check([CONFIG])).toEqual([]);
  expect(said()).toEqual([
    ['config.file_mounted', CONFIG],
    ['config.file_moved', CONFIG],
  ]);
  mount({ [CONFIG]: '/srv-2/my.yaml//deleted' });
  expect(await files.check([CONFIG])).toEqual([CONFIG]);
  expect(said()).toEqual([['config.file_replaced', CONFIG]]);
});

it('mounted directories are not logged', async () => {
  const { files, said } = setUp({ '/etc/evalwatch': '/srv', '/run/secrets': '/srv' });
  expect(await files.check([CONFIG, KEY])).toEqual([]);
  expect(files.hasAny()).toBe(false);
  expect(said()).toEqual([]);
});

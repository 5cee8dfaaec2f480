import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findFileMounts, parseMounts, readMounts } from '../../../src/files/mounts.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

it('parseMounts returns mount points and sources, with unescaped spaces and backslashes', () => {
  const text = [
    '84 64 254:0 /srv/a.yaml//deleted /etc/evalwatch/evalwatch.yaml ro - ext4 /dev/vda rw',
    String.raw`85 64 254:0 /my\040keys\134/key /run/a\040key rw master:1 - ext4 /dev/vda rw`,
    '',
  ].join('\n');
  expect([...parseMounts(text)]).toEqual([
    ['/etc/evalwatch/evalwatch.yaml', '/srv/a.yaml//deleted'],
    ['/run/a key', '/my keys\\/key'],
  ]);
});

it('findFileMounts returns single-file mounts, also behind a linked directory', async () => {
  await using directory = await temporaryDirectory();
  const at = (...names: string[]) => join(directory.path, ...names);
  await mkdir(at('real'));
  await writeFile(at('real', 'key'), '');
  await symlink('real', at('link'));
  const mounts = new Map([[at('real', 'key'), '/srv/key']]);
  const paths = [at('real', 'key'), at('link', 'key'), at('real', 'other'), at('none', 'key')];
  expect([...(await findFileMounts(paths, mounts))]).toEqual([
    [at('real', 'key'), '/srv/key'],
    [at('link', 'key'), '/srv/key'],
  ]);
});

it.runIf(process.platform === 'linux')(
  'readMounts returns the mounts of this process',
  async () => {
    expect([...(await readMounts()).keys()]).toContain('/proc');
  },
);

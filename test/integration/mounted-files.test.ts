import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ENTRY } from '../support/entry.ts';
import { startDaemon, UNHURRIED, workspace, type Workspace } from '../support/evalwatch.ts';
import { startAlpha } from '../support/service.ts';

const MOUNT = 'for file in evalwatch.yaml key; do mount --bind "$1/$file" "$2/$file"; done';

const canMount = spawnSync('unshare', ['--mount', 'true']).status === 0;
if (!canMount) console.warn('nothing can be mounted here: single-file mounts were not tried');

/** Starts a daemon whose configuration and key are each bind-mounted from the directory `outside`. */
function startInside({ directory, config }: Workspace, outside: string) {
  const script = `${MOUNT}; shift 2; exec "$@"`;
  const mounting = ['--mount', 'sh', '-c', script, 'sh', outside, directory];
  const args = [...mounting, process.execPath, ENTRY];
  return startDaemon({ config }, { program: 'unshare', args });
}

describe.skipIf(!canMount)('a daemon with single-file mounts', UNHURRIED, () => {
  it('warns at the start and fails a reload if the file was replaced on the host', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    const outside = join(place.directory, 'outside');
    await mkdir(outside);
    const [config, key] = [join(outside, 'evalwatch.yaml'), join(outside, 'key')];
    const inside = { config: place.config, key: join(place.directory, 'key') };
    await copyFile(place.config, config);
    await copyFile(inside.key, key);
    await using daemon = startInside(place, outside);
    expect(await daemon.line('config.file_mounted')).toMatchObject({
      level: 'warn',
      paths: [inside.config, inside.key],
    });

    // A file written in place is the same.
    await writeFile(config, `\n# the same\n`, { flag: 'a' });
    daemon.process.kill('SIGHUP');
    await daemon.line('config.reloaded');
    expect(daemon.of('config.file_replaced')).toEqual([]);

    // It is the same after a directory above it is renamed.
    const renamed = join(place.directory, 'renamed');
    await rename(outside, renamed);
    await writeFile(join(renamed, 'evalwatch.yaml'), `# still\n`, { flag: 'a' });
    daemon.process.kill('SIGHUP');
    expect(await daemon.line('config.file_moved')).toMatchObject({
      level: 'warn',
      paths: [inside.config, inside.key],
    });
    await expect.poll(() => daemon.of('config.reloaded').length, UNHURRIED).toBe(2);
    expect(daemon.of('config.file_replaced')).toEqual([]);
    await rename(renamed, outside);

    await writeFile(join(outside, 'new'), 'another-key-of-many');
    await rename(join(outside, 'new'), key);
    daemon.process.kill('SIGHUP');
    expect(await daemon.line('config.file_replaced')).toMatchObject({
      level: 'error',
      paths: [inside.key],
    });

    await copyFile(config, join(outside, 'new'));
    await rename(join(outside, 'new'), config);
    daemon.process.kill('SIGHUP');
    expect(await daemon.line('config.reload_failed')).toMatchObject({
      reasons: [expect.stringContaining('is a single-file mount and was replaced on the host')],
    });
    expect(daemon.of('config.reloaded')).toHaveLength(3);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
  });
});

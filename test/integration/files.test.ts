import { execFile, spawnSync } from 'node:child_process';
import { chmod, chown, copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ENTRY } from '../support/entry.ts';
import { startDaemon, UNHURRIED, workspace, type Workspace } from '../support/evalwatch.ts';
import { startAlpha } from '../support/service.ts';

const MOUNT = 'mount --bind "$1/evalwatch.yaml" "$2/evalwatch.yaml"';

const canMount = spawnSync('unshare', ['--mount', 'true']).status === 0;
if (!canMount) console.warn('nothing can be mounted here: single-file mounts were not tried');

/** Starts a daemon whose configuration is bind-mounted from the directory `outside`. */
function startInside({ directory, config }: Workspace, outside: string) {
  const script = `${MOUNT}; shift 2; exec "$@"`;
  const mounting = ['--mount', 'sh', '-c', script, 'sh', outside, directory];
  const args = [...mounting, process.execPath, ENTRY];
  return startDaemon({ config }, { program: 'unshare', args });
}

describe.skipIf(!canMount)('a daemon with a single-file mount', UNHURRIED, () => {
  it('warns at the start', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    const outside = join(place.directory, 'outside');
    await mkdir(outside);
    await copyFile(place.config, join(outside, 'evalwatch.yaml'));
    await using daemon = startInside(place, outside);
    expect(await daemon.line('config.file_mounted')).toMatchObject({
      level: 'warn',
      path: place.config,
    });
    expect(await daemon.stop()).toMatchObject({ code: 0 });
  });
});

const isRoot = process.getuid?.() === 0;
/** Removes the right of root to read every file. */
const WITHOUT_RIGHTS = ['setpriv', '--bounding-set=-dac_override,-dac_read_search'];
const NODE = [process.execPath, ENTRY];
const [program = '', ...args] = isRoot ? [...WITHOUT_RIGHTS, ...NODE] : NODE;

/** Makes a file unreadable: root gives it to another user, any other user removes all rights from it. */
async function giveAway(path: string): Promise<void> {
  await chmod(path, isRoot ? 0o600 : 0);
  if (isRoot) await chown(path, 12_345, 12_345);
}

function check(...options: readonly string[]): Promise<{ code: unknown; stderr: string }> {
  return new Promise((resolve) => {
    execFile(program, [...args, 'check', ...options], (error, _, stderr) =>
      resolve({ code: error?.code ?? 0, stderr }),
    );
  });
}

describe('a file of another user', UNHURRIED, () => {
  it('that holds the API key is reported with the user and a fix by check and the daemon', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    const key = join(place.directory, 'key');
    await giveAway(key);
    const [user, group] = [process.geteuid?.(), process.getegid?.()];
    const message =
      `the key file ${key} cannot be read: permission denied for user ${user}, group ${group}: ` +
      `give the file to that user (chown ${user}) or to the group (chgrp ${group} and chmod 640), ` +
      'and let the user enter the directories above it';

    const words = ['', ' cannot be listed'];
    const checks = [check('--config', place.config), check('--connect', '--config', place.config)];
    for (const [n, checked] of (await Promise.all(checks)).entries()) {
      expect(checked).toEqual({
        code: 1,
        stderr: expect.stringContaining(`error: project "alpha"${words[n]}: ${message}\n`),
      });
    }
    await using daemon = startDaemon(place, { program, args });
    expect(await daemon.line('poll.failed')).toMatchObject({ reason: 'auth', err: { message } });
    expect(service.arrivals).toEqual([]);
  });

  it('that is the configuration is reported with its path and the user', async () => {
    await using place = await workspace('http://127.0.0.1:1');
    await giveAway(place.config);
    const { code, stderr } = await check('--config', place.config);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`${place.config}:1:1: permission denied for user `),
    ]);
  });
});

import { execFile } from 'node:child_process';
import { chmod, chown } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ENTRY } from '../support/entry.ts';
import { startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { startAlpha } from '../support/service.ts';

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

    expect(await check('--config', place.config)).toEqual({
      code: 1,
      stderr: expect.stringContaining(`error: project "alpha": ${message}\n`) as string,
    });
    expect(await check('--connect', '--config', place.config)).toEqual({
      code: 1,
      stderr: expect.stringContaining(
        `error: project "alpha" cannot be listed: ${message}\n`,
      ) as string,
    });
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

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { readKey } from '../../../src/client/api-key.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { failureOf } from './harness.ts';

async function keyFile(content: string | Buffer): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const path = join(directory.path, 'key');
  await writeFile(path, content);
  return path;
}

describe('readKey', () => {
  it.each([
    ['bare', 'abcdefgh'],
    ['with a line end', 'abcdefgh\n'],
    ['with white space and a byte order mark', '\uFEFF \t abcdefgh \r\n\n'],
  ])('returns the trimmed key from a file that holds it %s', async (_, content) => {
    expect(await readKey({ file: await keyFile(content) }, systemClock)).toBe('abcdefgh');
  });

  it('returns the trimmed key from an environment variable', async () => {
    expect(await readKey({ env: 'KEY', value: ' abc def g ' }, systemClock)).toBe('abc def g');
  });

  const NOT_ASCII = 'has a character that is not printable ASCII';

  it.each([
    ['empty', '', 'is empty'],
    ['blank', ' \n ', 'is empty'],
    ['short', 'abcdefg\n', 'has fewer than 8 characters'],
    ['of several lines', 'abcdefgh\nijklmnop', 'has several lines'],
    ['with a NUL', 'abcdefgh\0ijkl', NOT_ASCII],
    ['of Latin-1', 'schlüssel', NOT_ASCII],
    ['binary', Buffer.from([0xff, 0xfe, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85]), NOT_ASCII],
  ])(
    'rejects an invalid key file without showing its content in the error: %s',
    async (_, content, fault) => {
      const file = await keyFile(content);
      expect(await failureOf(readKey({ file }, systemClock))).toMatchObject({
        reason: 'auth',
        message: `the key file ${file} ${fault}`,
      });
    },
  );

  it.each([
    ['no project', undefined, 'no API key'],
    ['an unset variable', { env: 'KEY', value: undefined }, 'the variable KEY is empty'],
    [
      'no such file',
      { file: '/nowhere/key' },
      '/nowhere/key cannot be read: there is no such file',
    ],
  ])(
    'fails with an auth error that names the cause when there is %s',
    async (_, source, wording) => {
      const { reason, message } = await failureOf(readKey(source, systemClock));
      expect(reason).toBe('auth');
      expect(message).toContain(wording);
    },
  );

  it('accepts a key file of 16 KiB and rejects a larger one', async () => {
    const file = await keyFile('abcdefgh'.padEnd(16_384));
    expect(await readKey({ file }, systemClock)).toBe('abcdefgh');
    await writeFile(file, 'abcdefgh'.padEnd(16_385));
    expect(await failureOf(readKey({ file }, systemClock))).toMatchObject({
      reason: 'auth',
      message: `the key file ${file} is too large for a key`,
    });
  });
});

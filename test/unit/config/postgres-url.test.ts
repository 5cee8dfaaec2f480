import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/config/config.ts';
import { readPostgresUrl } from '../../../src/config/secrets.ts';
import { temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();
const file = join(directory, 'url');

async function messageOf(source: Parameters<typeof readPostgresUrl>[0]): Promise<string> {
  const error: unknown = await readPostgresUrl(source).catch((reason: unknown) => reason);
  if (error instanceof ConfigError) return error.message;
  throw new Error('it was read without complaint');
}

describe('the database URL', () => {
  it.each([
    'postgres://db/evalwatch',
    'postgresql://eva:5ecret@db.example.com:5432/evalwatch?sslmode=verify-full',
    'postgres://eva:a%40b%25c@one:5432,two:5432/evalwatch?sslmode=verify-full',
    'postgres://one,[::1]:5433/evalwatch',
  ])('%s is read from a file or a variable and trimmed', async (url) => {
    writeFileSync(file, ` ${url}\r\n`);
    expect(await readPostgresUrl({ file })).toBe(url);
    expect(await readPostgresUrl({ env: 'DATABASE_URL', value: ` ${url}\n` })).toBe(url);
  });

  it.each([
    ['', 'the file is empty'],
    [' \n', 'the file is empty'],
    ['mysql://eva:5ecret@db/evalwatch', 'the address must start with postgres:// or postgresql://'],
    ['eva:5ecret@db', 'the address must start with postgres:// or postgresql://'],
    ['postgres://eva:5ecret@db\npostgres://eva:5ecret@db', 'the address must be one line'],
    [Buffer.from([0xff]), 'the file is not UTF-8 text'],
    ['p'.repeat(16_385), 'the file is larger than 16384 bytes'],
  ])('is rejected without being repeated if the file contains %j', async (content, message) => {
    writeFileSync(file, content);
    expect(await messageOf({ file })).toBe(`store.postgres_url_file: ${file}: ${message}`);
  });

  it.each([
    [undefined, 'the environment variable that this option names is not set or is empty'],
    ['eva:5ecret@db', 'the address must start with postgres:// or postgresql://'],
  ])('is rejected if the variable contains %j', async (value, message) => {
    expect(await messageOf({ env: 'DATABASE_URL', value })).toBe(
      `store.postgres_url_env: ${message}`,
    );
  });
});

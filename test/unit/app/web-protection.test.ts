import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Logger } from '../../../src/log/logger.ts';
import { WebProtection } from '../../../src/app/web-protection.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const HASH = '$2b$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze';
const ALICE = `basic_auth_users: { alice: ${HASH} }\n`;
const BOB = `basic_auth_users: { bob: ${HASH} }\n`;
const BROKEN = 'basic_auth_users: [\n';

interface Line {
  readonly level: string;
  readonly event: string;
  readonly reasons?: readonly string[];
}

/** Opens a web configuration with this text. */
async function open(text: string) {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const file = join(directory.path, 'web.yaml');
  const authority = makeCertificate(directory.path, 'authority');
  makeCertificate(directory.path, 'server', authority);
  await writeFile(file, text);
  const lines: Line[] = [];
  const say = (level: string) => (fields: object) => lines.push({ level, ...fields } as Line);
  const logger = { info: say('info'), error: say('error') } as unknown as Logger;
  const protection = await WebProtection.open(file, logger);
  let changes = 0;
  protection.onChange(() => (changes += 1));
  const look = async () => {
    await protection.look();
    return protection.current();
  };
  return {
    protection,
    directory: directory.path,
    write: (next: string) => writeFile(file, next),
    file,
    authority,
    look,
    changes: () => changes,
    users: async () => [...(await look()).users.keys()],
    lines,
  };
}

const TLS = 'tls_server_config: { cert_file: server.crt, key_file: server.key }\n';

describe('the web configuration at run time', () => {
  it('stays the same object until its content changes, comments aside', async () => {
    const { protection, look, changes, write, lines } = await open(TLS);
    const first = protection.current();
    expect(await look()).toBe(first);
    await write(`# another comment\n${TLS}`);
    expect(await look()).toBe(first);
    expect([lines, changes()]).toEqual([[], 0]);
  });

  it('follows its file', async () => {
    const { write, users, changes, lines } = await open(ALICE);
    expect(await users()).toEqual(['alice']);
    await write(BOB);
    expect(await users()).toEqual(['bob']);
    expect(changes()).toBe(1);
    expect(lines).toEqual([{ level: 'info', event: 'web_config.reloaded' }]);
  });

  it('follows a renewed certificate', async () => {
    const { look, directory, authority } = await open(TLS);
    const before = (await look()).tls?.context.cert;
    const { cert } = makeCertificate(directory, 'server', authority);
    expect(cert).not.toBe(before);
    expect((await look()).tls?.context.cert).toBe(cert);
  });

  it('keeps its last valid version while the file is broken', async () => {
    const { protection, write, users, lines } = await open(ALICE);
    expect(await users()).toEqual(['alice']);
    await write(BROKEN);
    expect(await users()).toEqual(['alice']);
    expect(await users()).toEqual(['alice']);
    expect(protection.isValid()).toBe(false);
    expect(lines).toMatchObject([
      {
        level: 'error',
        event: 'web_config.reload_failed',
        reasons: [expect.stringContaining('web.yaml:')],
      },
    ]);
    await write(BOB);
    expect(await users()).toEqual(['bob']);
    expect(protection.isValid()).toBe(true);
  });

  it('recovers from a certificate that does not exist, and from a missing file', async () => {
    const { protection, write, directory, users } = await open(ALICE);
    await write(`${ALICE}tls_server_config: { cert_file: a.crt, key_file: a.key }\n`);
    expect([await users(), protection.isValid()]).toEqual([['alice'], false]);
    await write(BOB);
    expect([await users(), protection.isValid()]).toEqual([['bob'], true]);
    await rm(join(directory, 'web.yaml'));
    expect([await users(), protection.isValid()]).toEqual([['bob'], false]);
    await write(ALICE);
    expect([await users(), protection.isValid()]).toEqual([['alice'], true]);
  });

  it.each([
    ['TLS away', TLS + ALICE, ALICE, 'tls_server_config cannot be added or removed'],
    ['TLS on', ALICE, TLS + ALICE, 'tls_server_config cannot be added or removed'],
    [
      'client certificates away',
      'tls_server_config: { cert_file: server.crt, key_file: server.key, client_auth_type: RequireAndVerifyClientCert, client_ca_file: authority.crt }\n',
      TLS,
      'client_auth_type cannot change from or to NoClientCert',
    ],
    ['all users away', TLS + ALICE, TLS, 'basic_auth_users cannot become empty'],
    ['everything away', ALICE, '', 'has no effect'],
  ])('rejects this change at run time: %s', async (_, before, after, reason) => {
    const { protection, write } = await open(before);
    const first = protection.current();
    await write(after);
    expect((await protection.look())?.message).toContain(reason);
    expect(protection.current()).toBe(first);
  });

  it('accepts a first user', async () => {
    const { write, users } = await open(TLS);
    await write(TLS + ALICE);
    expect(await users()).toEqual(['alice']);
  });
});

it('an invalid web configuration cannot be opened', async () => {
  await expect(open(BROKEN)).rejects.toThrow('not valid YAML');
});

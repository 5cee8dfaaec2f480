import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeCertificate } from '../../support/certificates.ts';
import { commandLine } from '../../support/command-line.ts';
import { LOGIN, startMailServer, startReceiver } from '../../support/receivers.ts';
import { temporaryDirectory, writeConfiguration } from './configuration-file.ts';

/** Runs a command with these receivers. Nothing that it prints may have a part of an address or of a secret. */
async function withReceivers(
  args: readonly string[],
  notify: readonly object[],
  { service = {}, files = {} }: { service?: object; files?: Record<string, string> } = {},
) {
  const directory = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const more = { notify, service };
  const config = writeConfiguration(directory, [{ id: 'a' }], more);
  const { code, stdout, stderr } = await commandLine([...args, '--config', config]);
  expect(stdout + stderr).not.toMatch(/5ecret|127\.0\.0\.1|mail\.example/);
  return { code, stdout, stderr: stderr.replaceAll(directory, '$DIRECTORY') };
}

const chat = { name: 'chat', type: 'slack', url_file: './url' };
const test = async (name: string, url: string) =>
  await withReceivers(['notify', 'test', name], [chat], { files: { url } });

describe('notify test', () => {
  it('sends one message that says it is a test', async () => {
    await using receiver = await startReceiver((response) => void response.end('ok'));
    expect(await test('chat', receiver.url)).toEqual({
      code: 0,
      stdout: 'OK: chat answered 200 to the test message\n',
      stderr: '',
    });
    expect(receiver.received.map(({ body }) => JSON.parse(body) as object)).toEqual([
      expect.objectContaining({
        text: '🔵 Test message to `chat`: messages of evalwatch arrive here',
      }),
    ]);
  });

  it.each<readonly [number, string, Record<string, string>, string]>([
    [403, 'invalid_token', {}, '403 invalid_token. The receiver refuses the address'],
    [404, 'no_service', {}, '404 no_service. The receiver does not know the address'],
    [429, '', { 'retry-after': '90' }, '429 Too Many Requests. It asks to wait for 1m30s. The rec'],
    [301, '', { location: '/5ecret' }, '301 Moved Permanently. Redirects are not followed: set'],
    [500, 'rollup_error', {}, '500 rollup_error. The receiver has a failure of its own'],
    [400, 'invalid_blocks', {}, '400 invalid_blocks. The receiver does not take such a message'],
    [200, '<!doctype html><p>Log in', {}, '200 with a page of HTML. This is a page for people'],
  ])('says what to do about %i %s', async (status, body, headers, expected) => {
    await using receiver = await startReceiver(
      (response) => void response.writeHead(status, headers).end(body),
    );
    const { code, stdout, stderr } = await test('chat', receiver.url);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^[^\n]+\n$/);
    expect(stderr).toContain(`error: chat: ${expected}`);
    expect(receiver.received).toHaveLength(1);
  });

  it.each([
    ['http://127.0.0.1:1/5ecret', /^error: chat: connection refused \(ECONNREFUSED\)\. Nothing li/],
    ['https://5ecret.invalid/x', /^error: chat: unknown host \(E\w+\)\. DNS does not know the/],
    ['', /^error: chat: url_file: \$DIRECTORY\/url: the file is empty\n$/],
  ])('says what to do about the address %j', async (url, expected) => {
    const { code, stderr } = await test('chat', url);
    expect(code).toBe(1);
    expect(stderr).toMatch(expected);
  });

  it('sends a mail, or says what to do about a login', async () => {
    const directory = temporaryDirectory();
    const own = makeCertificate(directory, 'own');
    await using server = await startMailServer({ secure: true, key: own.key, cert: own.cert });
    const mail = {
      name: 'mail',
      type: 'email',
      smtp_url_env: 'SMTP',
      from: 'a@b.c',
      to: ['d@e.f'],
    };
    onTestFinished(() => void vi.unstubAllEnvs());
    const testWith = async (login: string) => {
      vi.stubEnv('SMTP', `smtps://${login}@127.0.0.1:${server.port}`);
      return await withReceivers(['notify', 'test'], [mail], {
        service: { ca_file: own.certFile },
      });
    };
    expect(await testWith(LOGIN.inUrl)).toEqual({
      code: 0,
      stdout: 'OK: the mail server has taken the test message to mail\n',
      stderr: '',
    });
    expect(server.mails).toEqual([expect.objectContaining({ from: 'a@b.c', to: ['d@e.f'] })]);
    expect(await testWith('eval:5ecret')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^error: mail: the login is refused \(535 5\.7\.8\)\. Check user and password/,
      ),
    });
  });

  const two = [chat, { ...chat, name: 'pipeline' }];
  it.each<readonly [readonly string[], readonly object[], string]>([
    [[], two, 'name a receiver: chat, pipeline'],
    [['chta'], two, 'unknown receiver "chta", did you mean "chat"?'],
    [['x'], two, 'unknown receiver "x"; the receivers are chat, pipeline'],
    [['chat'], [], 'the configuration has no receivers: add one under notify'],
  ])('with %j is bad usage', async (names, receivers, message) => {
    expect(await withReceivers(['notify', 'test', ...names], receivers)).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: ${message}\n`,
    });
  });
});

describe('check', () => {
  it('prints who is told what', async () => {
    const receivers = [
      { name: 'all', type: 'slack', url_file: './good' },
      { name: 'some', type: 'webhook', url_file: './good', on: ['completed'], projects: ['a'] },
    ];
    const { code, stdout } = await withReceivers(['check'], receivers, { files: good });
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(
        'receiver  type     on                   teams  projects\n' +
          'all       slack    failed, stuck, down  -      all\n' +
          'some      webhook  completed            -      a\n',
      ) as string,
    });
  });

  const good = { good: 'https://hooks.example.com/5ecret', hook: `whsec_${'A'.repeat(43)}=` };

  it.each([
    [{ teams: ['search'], projects: undefined }, '"b", "c", "d" and 1 more'],
    [{ teams: ['search'], projects: ['b', 'c', 'd'] }, '"e"'],
    [{}, undefined],
  ])('warns of projects that no receiver with %j is told of', async (told, names) => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'url'), good.good);
    const others = ['b', 'c', 'd', 'e'].map((id) => ({ id }));
    const more = { notify: [{ ...chat, ...told }] };
    const projects = [{ id: 'a', team: 'search' }, ...others];
    const config = writeConfiguration(directory, projects, more);
    const { code, stderr } = await commandLine(['check', '--config', config]);
    const advice = 'set the team of the project, or name the project in projects of a receiver';
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: names === undefined ? '' : `warning: no receiver is told of ${names}: ${advice}\n`,
    });
  });

  it('names each secret of a receiver that is missing or malformed, and no value', async () => {
    const mail = { type: 'email', from: 'a@example.org', to: ['a@example.org'] };
    const receivers = [
      { name: 'a', type: 'slack', url_file: './missing' },
      { name: 'b', type: 'teams', url_env: 'UNSET_5ecret' },
      { name: 'c', type: 'webhook', url_file: './good', secret_file: './good' },
      { name: 'd', type: 'webhook', url_file: 'aB3dE5ecretfG7hI9jK1lM', secret_file: './hook' },
      { ...mail, name: 'e', smtp_url_file: './good' },
      { ...mail, name: 'f', smtp_url_file: './login' },
    ];
    const files = { ...good, login: 'smtps://ops:5ecret%@mail.example.org' };
    const { code, stderr } = await withReceivers(['check'], receivers, { files });
    expect(code).toBe(1);
    expect(stderr.trimEnd().split('\n')).toEqual([
      'warning: receiver "b": url_env: the environment variable that this option names is not set or is empty',
      'error: receiver "a": url_file: $DIRECTORY/missing: there is no such file',
      expect.stringMatching(
        /^error: receiver "c": secret_file: \$DIRECTORY\/good: the secret must be whsec_ and 24 /,
      ),
      'error: receiver "d": url_file: there is no such file; its path is not shown because it could be the address itself',
      expect.stringMatching(
        /^error: receiver "e": smtp_url_file: \$DIRECTORY\/good: the address must be like smtps:/,
      ),
      expect.stringMatching(
        /^error: receiver "f": smtp_url_file: \$DIRECTORY\/login: the address /,
      ),
    ]);
  });

  it('sends nothing to receivers, also with --connect', async () => {
    await using receiver = await startReceiver((response) => void response.end());
    const notify = [{ name: 'a', type: 'webhook', url_file: './url', secret_file: './hook' }];
    for (const option of [[], ['--connect']]) {
      await withReceivers(['check', ...option], notify, {
        files: { ...good, url: receiver.url },
        service: { base_url: 'https://service.invalid' },
      });
    }
    expect(receiver.received).toEqual([]);
  });
});

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { EmailReceiver, Receiver } from '../../../src/domain/receiver.ts';
import { slackBody } from '../../../src/notify/format/slack.ts';
import { teamsBody } from '../../../src/notify/format/teams.ts';
import { send, type SendOptions } from '../../../src/notify/send.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { LOGIN, startMailServer, startReceiver } from '../../support/receivers.ts';
import { failed } from './messages.ts';

const directory = mkdtempSync(join(tmpdir(), 'evalwatch-send-'));
afterAll(() => rmSync(directory, { recursive: true }));
const own = makeCertificate(directory, 'own');

const told = { name: 'r', on: ['failed'], teams: undefined, projects: undefined } as const;
const source = (value: string) => ({ env: 'URL', value });
const chat = (type: 'slack' | 'teams', url: string): Receiver => ({
  ...told,
  type,
  url: source(url),
});
const webhook = (url: string): Receiver => ({
  ...told,
  type: 'webhook',
  url: source(url),
  secret: undefined,
});
const email = (url: string, to = ['ops@example.com']): EmailReceiver => ({
  ...told,
  type: 'email',
  smtpUrl: source(url),
  from: 'evalwatch <evalwatch@example.com>',
  to,
});
const secretFile = (name: string, text: string) => {
  const file = join(directory, name);
  writeFileSync(file, text);
  return { file };
};

/** Sends a message, and checks that nothing which was said names an address or a secret. */
async function attempt(receiver: Receiver, options: Partial<SendOptions> = {}) {
  const delivery = await send(receiver, failed, {
    network: { authorities: undefined, proxyUrl: undefined },
    version: '1.2.3',
    clock: systemClock,
    signal: new AbortController().signal,
    ...options,
  });
  expect(JSON.stringify(delivery)).not.toMatch(/5ecret|127\.0\.0\.1|localhost|example\.com|\\n/i);
  return delivery;
}

/** Lets deadlines pass a hundred times as fast. */
const hurried = {
  ...systemClock,
  timeout: (ms: number, callback: () => void) => systemClock.timeout(ms / 100, callback),
};

/** Starts a server of TCP. */
async function startServer(onConnection: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: async () => void server.close() };
}

type Answer = Readonly<{ status?: number; headers?: Record<string, string>; body?: string }>;
const answering =
  ({ status = 200, headers = {}, body = '' }: Answer) =>
  (response: ServerResponse) =>
    void response.writeHead(status, headers).end(body);

describe('a receiver by HTTP', () => {
  it.each([
    ['slack', slackBody(failed)],
    ['teams', teamsBody(failed)],
  ] as const)('of type %s is sent its format', async (type, body) => {
    await using receiver = await startReceiver(answering({ body: 'ok' }));
    expect(await attempt(chat(type, receiver.url))).toEqual({ ok: true, statusCode: 200 });
    expect(receiver.received).toEqual([
      {
        method: 'POST',
        path: '/5ecret/hook',
        body,
        headers: expect.objectContaining({
          'content-type': 'application/json',
          'user-agent': 'evalwatch/1.2.3',
        }),
      },
    ]);
    expect(receiver.received[0]?.headers).not.toHaveProperty('x-api-key');
  });

  it('of type webhook is sent a signature by the secret as it is now', async () => {
    await using receiver = await startReceiver(answering({ status: 204 }));
    for (const filler of [1, 2]) {
      const secret = `whsec_${Buffer.alloc(32, filler).toString('base64')}`;
      const hook = {
        ...webhook(receiver.url),
        secret: secretFile('hook', `${secret}\n`),
      } as Receiver;
      expect(await attempt(hook)).toEqual({ ok: true, statusCode: 204 });
      const { body = '', headers = {} } = receiver.received.at(-1) ?? {};
      expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toEqual(
        JSON.parse(JSON.stringify(failed)),
      );
    }
    expect(receiver.received[0]?.headers['webhook-id']).toBe(failed.id);
    expect(receiver.received[1]?.headers['webhook-id']).toBe(failed.id);
  });

  const page = '\n<!DOCTYPE html><title>Log in at 5ecret.example.com</title>';
  const advice = expect.any(String) as string;
  it.each<readonly [string, Answer, object]>([
    ['Slack: 403', { status: 403, body: 'invalid_token' }, { reason: '403 invalid_token' }],
    [
      'Discord: 404',
      { status: 404, body: '{"message": "Unknown Webhook", "code": 10015}' },
      { reason: '404 Unknown Webhook' },
    ],
    [
      'Teams: 400',
      { status: 400, body: '{"error":{"code":"X","message":"trigger is \\n\\u202e not enabled"}}' },
      { reason: '400 trigger is \\u202e not enabled' },
    ],
    ['401 without words', { status: 401 }, { reason: '401 Unauthorized' }],
    [
      '429 with seconds',
      { status: 429, headers: { 'retry-after': '30' }, body: 'rate_limited' },
      { reason: '429 rate_limited', retryAfterMs: 30_000 },
    ],
    [
      '429 with days',
      { status: 429, headers: { 'retry-after': '200000' } },
      { retryAfterMs: 3_600_000 },
    ],
    ['500 with a page', { status: 500, body: page }, { reason: '500 Internal Server Error' }],
    ['a number without a name', { status: 599 }, { reason: '599' }],
    ['an echo', { status: 400, body: 'no hook /5ecret/HOOK here' }, { reason: '400 Bad Request' }],
    ['long words', { status: 400, body: 'x'.repeat(4000) }, { reason: `400 ${'x'.repeat(99)}…` }],
    [
      'the beginning of a token',
      { status: 400, body: 'no token 01234567…' },
      { reason: '400 Bad Request' },
    ],
    [
      'an encoded parameter',
      { status: 400, body: 'no sig a%2Bb%20c' },
      { reason: '400 Bad Request' },
    ],
    ['200 with a page', { body: page }, { reason: '200 with a page of HTML' }],
  ])('says what it answers: %s', async (_, answer, expected) => {
    await using receiver = await startReceiver(answering(answer));
    const { status: statusCode = 200 } = answer;
    const url = `${receiver.url}?sig=a%2Bb%20c%2Fde&token=0123456789`;
    expect(await attempt(chat('slack', url))).toEqual({
      ok: false,
      statusCode,
      reason: expect.stringMatching(new RegExp(`^${statusCode}`)),
      advice,
      ...expected,
    });
  });

  it('has a message that it took with a page of HTML or with a long answer', async () => {
    for (const [body, doubt] of [
      [page, expect.stringMatching(/^200 with a page of HTML/)],
      [`OK ${'x'.repeat(10_000)}`, undefined],
    ]) {
      await using receiver = await startReceiver(answering({ body: body as string }));
      expect(await attempt(webhook(receiver.url))).toEqual({
        ok: true,
        statusCode: 200,
        ...(doubt && { doubt }),
      });
    }
  });

  it('is not followed to another address', async () => {
    await using other = await startReceiver(answering({}));
    await using receiver = await startReceiver(
      answering({ status: 307, headers: { location: other.url }, body: other.url }),
    );
    expect(await attempt(webhook(receiver.url))).toMatchObject({
      ok: false,
      reason: '307 Temporary Redirect',
      advice: expect.stringMatching('Redirects are not followed'),
    });
    expect(other.received).toEqual([]);
  });

  it.each<readonly [string, (response: ServerResponse) => void]>([
    ['does not answer', () => {}],
    [
      'begins an answer that does not end',
      (response) => {
        response.writeHead(500);
        const drip = setInterval(() => response.write('.'), 5);
        response.on('close', () => clearInterval(drip));
      },
    ],
  ])('that %s has a deadline', async (_, answer) => {
    await using receiver = await startReceiver(answer);
    expect(await attempt(webhook(receiver.url), { clock: hurried })).toMatchObject({ ok: false });
    expect(receiver.received).toHaveLength(1);
  });

  it('is explained if it does not answer', async () => {
    await using receiver = await startReceiver(() => {});
    await using secure = await startReceiver(answering({}), own);
    const mute = webhook(receiver.url);
    expect(await attempt(mute, { clock: hurried })).toMatchObject({
      reason: 'no answer within 10 s',
    });
    const reasons = [
      ['http://127.0.0.1:1/5ecret', /^connection refused \(ECONNREFUSED\)$/],
      ['http://5ecret.invalid/', /^unknown host \((?:ENOTFOUND|EAI_AGAIN)\)$/],
      [secure.url, /^no trusted TLS connection \([A-Z_]+\)$/],
      [secure.url.replace('https', 'http'), /^the connection failed \([A-Z_]+\)$/],
      [receiver.url.replace('http', 'https'), /^no trusted TLS connection \([A-Z_]+\)$/],
    ] as const;
    for (const [url, reason] of reasons) {
      expect(await attempt(webhook(url))).toEqual({
        ok: false,
        reason: expect.stringMatching(reason),
        advice,
      });
    }
    expect(secure.received).toEqual([]);
  });

  it('may have a certificate of ca_file, which may lack its root', async () => {
    const issuer = makeCertificate(directory, 'issuer', own, { isAuthority: true });
    const certificate = makeCertificate(directory, 'leaf', issuer);
    await using receiver = await startReceiver(answering({}), certificate);
    await using server = await startMailServer({ secure: true, ...certificate });
    const network = { authorities: issuer.cert, proxyUrl: undefined };
    expect(await attempt(webhook(receiver.url), { network })).toMatchObject({ ok: true });
    const url = `smtps://${LOGIN.inUrl}@127.0.0.1:${server.port}`;
    expect(await attempt(email(url), { network })).toEqual({ ok: true });
  });

  it('is reached by the proxy of the service', async () => {
    const asked: string[] = [];
    await using proxy = await startServer((socket) => {
      socket.once('data', (data) => {
        asked.push(data.toString().split('\r\n')[0] ?? '');
        socket.end('HTTP/1.1 502 no\r\n\r\n');
      });
    });
    const network = { authorities: undefined, proxyUrl: `http://127.0.0.1:${proxy.port}/` };
    const receiver = 'https://5ecret.example.com/';
    expect(await attempt(webhook(receiver), { network })).toMatchObject({
      ok: false,
      advice: expect.stringMatching('service.proxy_url'),
    });
    expect(asked).toEqual(['CONNECT 5ecret.example.com:443 HTTP/1.1']);
    for (const proxyUrl of ['http://127.0.0.1:1/', 'http://5ecret.invalid/'])
      expect(await attempt(webhook(receiver), { network: { ...network, proxyUrl } })).toMatchObject(
        { advice: expect.stringMatching('service.proxy_url') },
      );
  });
});

it.each<readonly [string, () => Receiver, RegExp]>([
  [
    'an unset variable',
    () => ({ ...chat('slack', ''), url: { env: 'A', value: undefined } }) as Receiver,
    /^url_env: the environment variable that this option names is not set or is empty$/,
  ],
  [
    'a wrong secret',
    () => ({ ...webhook('http://127.0.0.1:1'), secret: secretFile('wrong', '5ecret') }) as Receiver,
    /^secret_file: .*wrong: the secret must be whsec_ and 24 to 64 bytes in Base64/,
  ],
])('a receiver with %s is sent nothing', async (_, receiver, reason) => {
  expect(await attempt(receiver())).toEqual({ ok: false, reason: expect.stringMatching(reason) });
});

it.each([
  ['a webhook', async () => await startReceiver(() => {}), 'http'],
  ['a mail server', async () => await startMailServer({ onConnect: () => {} }), 'smtp'],
] as const)('an attempt at %s ends at once when its signal aborts', async (_, start, scheme) => {
  await using server = await start();
  const { port } = server;
  const stopping = new AbortController();
  const url = `${scheme}://127.0.0.1:${port}`;
  const attempted = attempt(scheme === 'http' ? webhook(url) : email(url), {
    signal: stopping.signal,
  });
  stopping.abort(new Error('stopping'));
  expect(await attempted).toEqual({ ok: false, reason: 'evalwatch is stopping' });
});

describe('a mail server', () => {
  const network = { authorities: own.cert, proxyUrl: 'http://127.0.0.1:1/' };
  const refusing = (code: number, text: string) =>
    Object.assign(new Error(text), { responseCode: code });

  it('with TLS and a login takes the mail', async () => {
    await using server = await startMailServer({ secure: true, key: own.key, cert: own.cert });
    const receiver = email(`smtps://${LOGIN.inUrl}@127.0.0.1:${server.port}`, [
      'ops@example.com',
      'Ops <two@example.com>',
    ]);
    expect(await attempt(receiver, { network })).toEqual({ ok: true });
    expect(await attempt(receiver, { network })).toEqual({ ok: true });
    const mail = {
      from: 'evalwatch@example.com',
      to: ['ops@example.com', 'two@example.com'],
      isEncrypted: true,
      user: LOGIN.user,
    };
    expect(server.mails).toEqual([expect.objectContaining(mail), expect.objectContaining(mail)]);
    for (const { source: text } of server.mails) {
      expect(text).toContain(`Message-ID: <${failed.id}@example.com>\r\n`);
      expect(text).toContain('Subject: 3 prompts of checkout-bot failed');
      expect(text).toContain('Auto-Submitted: auto-generated\r\n');
    }
  });

  it('by smtp:// takes nothing before STARTTLS, and then a login and the mail', async () => {
    await using server = await startMailServer({ key: own.key, cert: own.cert });
    const receiver = email(`smtp://${LOGIN.inUrl}@127.0.0.1:${server.port}/`);
    expect(await attempt(receiver, { network })).toEqual({ ok: true });
    expect(server.mails).toEqual([
      expect.objectContaining({ isEncrypted: true, user: LOGIN.user }),
    ]);
  });

  it('without TLS is sent neither login nor mail, unless its address says tls=off', async () => {
    let logins = 0;
    await using server = await startMailServer({
      disabledCommands: ['STARTTLS'],
      authOptional: true,
      allowInsecureAuth: true,
      onAuth: (_auth, _session, callback) => {
        logins += 1;
        callback(null, { user: 'x' });
      },
    });
    const url = `127.0.0.1:${server.port}`;
    expect(await attempt(email(`smtp://${LOGIN.inUrl}@${url}`), { network })).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/^there is no STARTTLS \(5\d\d/),
      advice: expect.stringMatching(/tls=off/),
    });
    expect(server.mails).toEqual([]);
    expect(logins).toBe(0);
    expect(await attempt(email(`smtp://${url}?tls=off`), { network })).toEqual({ ok: true });
    expect(server.mails).toEqual([expect.objectContaining({ isEncrypted: false })]);
  });

  it.each<readonly [string, Parameters<typeof startMailServer>[0], object]>([
    [
      'the recipient',
      { onRcptTo: (_, __, done) => done(refusing(550, '5.1.1 <ops@example.com>: who?')) },
      {
        ok: false,
        reason: 'the recipient is refused (550 5.1.1)',
        advice: expect.stringMatching('`to`'),
      },
    ],
    [
      'the recipient for now',
      { onRcptTo: (_, __, done) => done(refusing(451, '4.7.1 greylisted at 127.0.0.1')) },
      {
        ok: false,
        reason: 'the recipient is refused for now (451 4.7.1)',
        advice: expect.stringMatching('later'),
      },
    ],
    [
      'a client without a login',
      { onMailFrom: (_, __, done) => done(refusing(530, '5.7.0 Authentication required')) },
      {
        ok: false,
        reason: 'the server wants a login or TLS (530 5.7.0)',
        advice: expect.stringMatching('user and password'),
      },
    ],
    [
      'the message',
      {
        onData: (stream, _, done) =>
          void stream
            .resume()
            .on('end', () => done(refusing(554, '5.7.1 spam, see https://example.com'))),
      },
      { ok: false, reason: 'the message is refused (554 5.7.1)', advice: expect.any(String) },
    ],
    [
      'one of two recipients',
      {
        onRcptTo: ({ address }, _, done) =>
          done(address === 'two@example.com' ? refusing(550, '5.1.1 <two@example.com>') : null),
      },
      { ok: true, doubt: 'recipients refused: 1 of 2 (550 5.1.1)' },
    ],
  ])('that refuses %s', async (what, options, expected) => {
    await using server = await startMailServer({
      ...options,
      secure: true,
      key: own.key,
      cert: own.cert,
    });
    const to = what.startsWith('one') ? ['ops@example.com', 'two@example.com'] : undefined;
    const url = `smtps://${LOGIN.inUrl}@127.0.0.1:${server.port}`;
    expect(await attempt(email(url, to), { network })).toEqual(expected);
  });

  it.each([
    ['does not greet', '', ''],
    ['begins an answer that does not end', '220 hello\r\n', '250-dot\r\n'],
  ])('that %s has a deadline', async (_, greeting, dot) => {
    await using server = await startServer((socket) => {
      socket.write(greeting);
      const drip = setInterval(() => socket.write(dot), 5);
      socket.on('close', () => clearInterval(drip));
    });
    const late = { network, clock: hurried };
    expect(await attempt(email(`smtp://127.0.0.1:${server.port}`), late)).toEqual({
      ok: false,
      reason: 'no answer within 10 s',
      advice: expect.stringMatching('smtps://'),
    });
  });

  it('is explained if it does not take the login or does not answer', async () => {
    await using server = await startMailServer({ secure: true, key: own.key, cert: own.cert });
    await using plain = await startMailServer({});
    const url = `127.0.0.1:${server.port}`;
    const reasons = [
      [`smtps://eval:5ecret@${url}`, network, /^the login is refused \(535 5\.7\.8\)$/],
      [`smtps://${LOGIN.inUrl}@${url}`, {}, /^no trusted TLS connection \([A-Z_]+\)$/],
      [
        `smtps://${LOGIN.inUrl}@127.0.0.1:${plain.port}`,
        network,
        /^no trusted TLS connection \([A-Z_]+\)$/,
      ],
      [
        `smtp://${LOGIN.inUrl}@127.0.0.1:${plain.port}`,
        {},
        /^no trusted TLS connection \([A-Z_]+\)$/,
      ],
      ['smtps://127.0.0.1:1', network, /^connection refused \(ECONNREFUSED\)$/],
      ['smtps://5ecret.invalid', network, /^unknown host \((?:ENOTFOUND|EAI_AGAIN)\)$/],
    ] as const;
    for (const [address, given, reason] of reasons) {
      const options = { network: { authorities: undefined, proxyUrl: undefined, ...given } };
      expect(await attempt(email(address), options)).toEqual({
        ok: false,
        reason: expect.stringMatching(reason),
        advice: expect.any(String),
      });
    }
    expect([...server.mails, ...plain.mails]).toEqual([]);
  });
});

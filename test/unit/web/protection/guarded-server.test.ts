import bcrypt from 'bcrypt';
import { once } from 'node:events';
import { connect as connectPlainly, type AddressInfo } from 'node:net';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createRequestFilter } from '../../../../src/web/request/filter.ts';
import { createGuardedServer } from '../../../../src/web/protection/guarded-server.ts';
import type { Handler } from '../../../../src/web/handler.ts';
import type { ClientAuth, Protection } from '../../../../src/domain/protection.ts';
import { ask } from '../../../support/ask.ts';
import { type Certificate, makeCertificate } from '../../../support/certificates.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const PASSWORD = 'open sesame';
const ALICE = { auth: `alice:${PASSWORD}` };
const OPEN: Protection = { tls: undefined, users: new Map() };
const WITH_LOGIN: Protection = {
  ...OPEN,
  users: new Map([['alice', bcrypt.hashSync(PASSWORD, 4)]]),
};

let server: Certificate;
let renewed: Certificate;
let authority: Certificate;
let client: Certificate;
let stranger: Certificate;

beforeAll(async () => {
  await using directory = await temporaryDirectory();
  const { path } = directory;
  server = makeCertificate(path, 'server');
  renewed = makeCertificate(path, 'renewed');
  authority = makeCertificate(path, 'authority');
  client = makeCertificate(path, 'client', authority);
  stranger = makeCertificate(path, 'stranger');
});

/** Starts a server with a protection that the test can change. */
async function serve(first: Protection, handle?: Handler) {
  let now: Protection | undefined = first;
  const bugs: unknown[] = [];
  const onBug = (error: unknown) => bugs.push(error);
  const withLogin: Handler =
    handle ?? ((_request, response, { path }) => response.end(`answer to ${path}`));
  const withoutLogin: Handler = (...request) => {
    request[1].setHeader('x-login', 'none');
    withLogin(...request);
  };
  const listeners: (() => void)[] = [];
  const guarded = createGuardedServer(
    {},
    { first, current: () => now, onChange: (listener) => void listeners.push(listener) },
    { filter: createRequestFilter(() => [], onBug).filter, withLogin, withoutLogin, onBug },
  );
  guarded.on('tlsClientError', () => {});
  guarded.listen(0, '127.0.0.1');
  await once(guarded, 'listening');
  onTestFinished(() => {
    guarded.close();
    guarded.closeAllConnections();
  });
  const { port } = guarded.address() as AddressInfo;
  return {
    guarded,
    port,
    url: `${first.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    bugs,
    become: (next: Protection | undefined) => {
      now = next;
      for (const listener of listeners) listener();
    },
  };
}

function withTls(clientAuth: ClientAuth, { cert, key } = server, ca?: string): Protection {
  return { ...OPEN, tls: { context: { cert, key, ca }, clientAuth } };
}

describe('server with users', () => {
  it('admits the right password, and answers other requests 401 with WWW-Authenticate', async () => {
    const { url } = await serve(WITH_LOGIN);

    expect(await ask(`${url}/metrics`, ALICE)).toMatchObject({
      status: 200,
      text: 'answer to /metrics',
    });
    const refused = await ask(`${url}/metrics`);
    expect(refused).toMatchObject({
      status: 401,
      headers: {
        'www-authenticate': expect.stringContaining('Basic realm='),
        'content-type': 'application/json',
      },
    });
    expect(JSON.parse(refused.text)).toHaveProperty('error');
    expect((await ask(`${url}/metrics`, { auth: 'alice:guess' })).status).toBe(401);
  });

  it.each([
    ['/-/healthy', '/-/ready', '/-/healthy?from=probe', '/-/ready?x'],
    ['/-/%68ealthy', '/%2D/ready', 'http://other/-/healthy', 'https://[::1]:1/-/ready?x'],
  ])('answers a probe without a login, also in another form: %s %s %s %s', async (...paths) => {
    const { url } = await serve(WITH_LOGIN);
    for (const path of paths)
      expect([path, (await ask(url, { path })).status]).toEqual([path, 200]);
  });

  it.each([
    ['/', '/'],
    ['/metrics?a=/../b&c=\\', '/metrics'],
    ['/%6Detric%73', '/metrics'],
    ['//metrics', '//metrics'],
    ['/metrics/', '/metrics/'],
    ['/METRICS', '/METRICS'],
    ['/-/reload', '/-/reload'],
    ['/-/poll', '/-/poll'],
    ['/-/healthy/', '/-/healthy/'],
    ['//-/healthy', '//-/healthy'],
    ['/-/healthyx', '/-/healthyx'],
    ['/-/HEALTHY', '/-/HEALTHY'],
    ['/-/healthy%3fx', '/-/healthy%3Fx'],
    ['/metrics?/-/healthy', '/metrics'],
    ['/api%2fv1', '/api%2Fv1'],
    ['/projects/a%2Fb%20%c3%bc%25', '/projects/a%2Fb%20%C3%BC%25'],
    ['/projects/100%', '/projects/100%25'],
    ['/projects/%zz%2', '/projects/%25zz%252'],
    ['/projects/%252e%252e', '/projects/%252e%252e'],
    ['/projects/...', '/projects/...'],
    ['/projects/<"a"|b^c`[d]{e}>', '/projects/%3C%22a%22%7Cb%5Ec%60%5Bd%5D%7Be%7D%3E'],
    ['/projects/%00%0a', '/projects/%00%0A'],
    ['http://x', '/'],
    ['HTTPS://x:1?/-/healthy', '/'],
    ['http://[::1]/metrics', '/metrics'],
    ['http://other/-/healthy/', '/-/healthy/'],
  ])('requires a login for %s, and answers it as %s', async (target, path) => {
    const { port } = await serve(WITH_LOGIN);
    const login = `Authorization: Basic ${Buffer.from(ALICE.auth).toString('base64')}`;
    expect(await send(port, `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)).toMatch(/^HTTP\S+ 401 /);
    const answer = await send(port, `GET ${target} HTTP/1.1\r\nHost: x\r\n${login}\r\n\r\n`);
    expect(answer.slice(answer.indexOf('\r\n\r\n') + 4)).toBe(`answer to ${path}`);
  });

  it.each([
    ['/-/healthy/../../metrics', '/-/healthy/%2e%2E/%2E./metrics', '/-/healthy/.'],
    ['/-/healthy#/../metrics', '/-/healthy\\..\\..\\metrics', 'http://user@other/-/healthy'],
    [
      'http:///-/healthy',
      'ftp://other/-/healthy',
      '*',
      'http://',
      'http://a@x/',
      'http://x:99999/',
    ],
    ['/.', '/..', '/./a', '/a/..', '/a/../b', '/%2e', '/a/%2E%2e/b', '/.%2e/', 'http://x/..'],
    ['/a#b', '/a?b#c', '/a\\b'],
  ])('rejects ambiguous targets with 400: %j', async (...targets) => {
    const { port } = await serve(WITH_LOGIN);
    const login = `Authorization: Basic ${Buffer.from(ALICE.auth).toString('base64')}`;
    for (const target of targets) {
      const answer = await send(port, `GET ${target} HTTP/1.1\r\nHost: x\r\n${login}\r\n\r\n`);
      expect(target + answer).toMatch(/HTTP\/1\.1 400 [^]*\r\n\r\n\{"error":/);
    }
  });

  it.each([
    ['0/?aaaa', '\u00be/metrics?', 'x/metrics', 'x:1/', 'x#', 'a@b', '[x]', 'x:70000', 'a b', ''],
    ['.', ':1', 'x:y', 'x:-1', 'x:65536', 'x:000001', 'x/', 'x?', 'x\\', '[::1', '[1.2.3.4]'],
    ['[::1%25eth0]', '::1', 'x,y', '\u00fc.example', '%41', 'x'.repeat(255)],
  ])('rejects a probe with an invalid Host with 400: %j', async (...hosts) => {
    const { port } = await serve(WITH_LOGIN);
    for (const target of ['/-/healthy', 'http://other/-/healthy']) {
      for (const host of hosts) {
        const answer = await send(port, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
        expect(host + answer).toMatch(/HTTP\/1\.1 400 [^]*\r\n\r\n\{"error":"Host must be /);
      }
    }
  });

  it('reads the Host only from its header, which only HTTP/1.0 may lack', async () => {
    const { port } = await serve(WITH_LOGIN);
    const statusOf = async (version: string, headers: string) =>
      (await send(port, `GET /-/ready HTTP/${version}\r\n${headers}\r\n`)).split(' ')[1];
    expect(await statusOf('1.1', 'X-Header: host\r\nHost: x\r\n__proto__: y\r\n')).toBe('200');
    expect(await statusOf('1.1', 'X-Header: host\r\nVia: Host\r\n')).toBe('400');
    expect(await statusOf('1.0', '')).toBe('200');
  });

  it.each(['Host: x\r\nHost: x', 'Host: x\r\nAuthorization: a\r\nauthorization: a'])(
    'rejects a duplicate Host or Authorization header: %j',
    async (headers) => {
      const { port } = await serve(WITH_LOGIN);
      const answer = await send(port, `GET /-/healthy HTTP/1.1\r\n${headers}\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*is given more than once/);
    },
  );

  it('rejects a removed user, and ends the open responses of that user', async () => {
    const started = Promise.withResolvers<void>();
    const { url, become } = await serve(WITH_LOGIN, (_request, response, { path }) => {
      if (path === '/stream') {
        response.write('first');
        started.resolve();
      } else response.end();
    });
    const stream = ask(`${url}/stream`, ALICE).catch(({ message }: Error) => message);
    await started.promise;

    become({ ...WITH_LOGIN, users: new Map([['bob', bcrypt.hashSync('other', 4)]]) });

    expect((await ask(url, ALICE)).status).toBe(401);
    expect((await ask(url, { auth: 'bob:other' })).status).toBe(200);
    expect(await stream).toMatch(/^(?:aborted|socket hang up)$/);
  });

  /** Makes the next check of a login wait until it is `released`. */
  function holdLogin() {
    const [hashing, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { hash } = bcrypt;
    // oxlint-disable-next-line typescript/no-misused-promises -- this one of its overloads is called
    const slowly = vi.spyOn(bcrypt, 'hash').mockImplementationOnce(async (password, salt) => {
      hashing.resolve();
      await released.promise;
      return await hash(password, salt);
    });
    onTestFinished(() => slowly.mockRestore());
    return { hashing, released };
  }

  it('rejects a user that is removed while the login is checked', async () => {
    const { hashing, released } = holdLogin();
    const { url, become } = await serve(WITH_LOGIN);
    const alice = ask(url, ALICE);
    await hashing.promise;

    become({ ...WITH_LOGIN, users: new Map([['bob', bcrypt.hashSync('other', 4)]]) });
    // This request makes the server read the change.
    expect((await ask(url)).status).toBe(401);
    released.resolve();

    expect((await alice).status).toBe(401);
  });

  it('does not handle a request whose client disconnects while the login is checked', async () => {
    const { hashing, released } = holdLogin();
    const answered: string[] = [];
    const { url, guarded } = await serve(WITH_LOGIN, (_request, response, { path }) => {
      answered.push(path);
      response.end();
    });
    const [gone, noticed] = [new AbortController(), Promise.withResolvers<void>()];
    guarded.once('request', (_request, response) => response.once('close', noticed.resolve));
    const leaving = ask(`${url}/left`, { ...ALICE, signal: gone.signal });
    await hashing.promise;
    gone.abort();
    await expect(leaving).rejects.toThrow('aborted');
    await noticed.promise;
    released.resolve();
    expect((await ask(`${url}/stayed`, ALICE)).status).toBe(200);
    expect(answered).toEqual(['/stayed']);
  });

  it('answers a flood of wrong passwords with 503, and still answers a known login and probes', async () => {
    const slow = bcrypt.hashSync(PASSWORD, 7);
    const { url } = await serve({ ...OPEN, users: new Map([['alice', slow]]) });
    expect((await ask(url, ALICE)).status).toBe(200);

    const turnedAway = Promise.withResolvers<void>();
    const flood = Array.from({ length: 60 }, async (_, n) => {
      const { status, headers } = await ask(url, { auth: `alice:${n}` });
      if (status === 503) turnedAway.resolve();
      return `${status}, retry after ${headers['retry-after']}`;
    });
    await turnedAway.promise;
    expect((await ask(url, ALICE)).status).toBe(200);
    expect((await ask(`${url}/-/healthy`)).status).toBe(200);
    expect(new Set(await Promise.all(flood))).toEqual(
      new Set(['401, retry after undefined', '503, retry after 1']),
    );
  });
});

it('requests reach the handler without login only if neither users nor TLS are configured', async () => {
  const login = async (protection: Protection) => {
    const { url } = await serve(protection);
    return (await ask(url, ALICE)).headers['x-login'];
  };
  expect(await login(OPEN)).toBe('none');
  expect(await login(WITH_LOGIN)).toBeUndefined();
  expect(await login(withTls('NoClientCert'))).toBeUndefined();
});

it('an invalid web configuration is answered 500, except for probes', async () => {
  const { url, become } = await serve(WITH_LOGIN);
  become(undefined);
  expect((await ask(url, ALICE)).status).toBe(500);
  expect((await ask(`${url}/-/ready`)).status).toBe(200);
  become(WITH_LOGIN);
  expect((await ask(url, ALICE)).status).toBe(200);
});

describe('server with TLS', () => {
  it('uses the current certificate for each new connection', async () => {
    const { url, become } = await serve(withTls('NoClientCert'));
    const before = await ask(url);
    become(withTls('NoClientCert', renewed));
    const after = await ask(url);
    expect(before.serial).toBeDefined();
    expect(after.serial).not.toBe(before.serial);
    expect(await ask(url, { ca: renewed.cert, rejectUnauthorized: true })).toMatchObject({
      status: 200,
    });
  });

  it('keeps serving after clients abort the handshake or speak plain HTTP', async () => {
    const { url, port, become } = await serve(withTls('NoClientCert'));
    await expect(ask(url.replace('https', 'http'))).rejects.toThrow(/socket hang up|ECONNRESET/);
    const leaving = Array.from({ length: 20 }, async (_, n) => {
      const socket = connectPlainly(port, '127.0.0.1');
      await once(socket, 'connect');
      // The beginning of a handshake, or nothing.
      if (n % 2 === 0) socket.write(Buffer.from('160301020001', 'hex'));
      socket.resetAndDestroy();
    });
    await Promise.all(leaving);
    become(withTls('NoClientCert', renewed));
    expect((await ask(url)).status).toBe(200);
  });

  const none = () => ({});
  const known = () => ({ cert: client.cert, key: client.key });
  const unknown = () => ({ cert: stranger.cert, key: stranger.key });
  it.each<[ClientAuth, readonly number[]]>([
    ['NoClientCert', [200, 200, 200]],
    ['VerifyClientCertIfGiven', [200, 403, 200]],
    ['RequireAndVerifyClientCert', [403, 403, 200]],
  ])(
    'with client_auth_type %s checks clients without a certificate, with an untrusted and with a trusted one',
    async (mode, expected) => {
      const { url } = await serve(withTls(mode, server, authority.cert));
      const clients = [none(), unknown(), known()];
      const answers = await Promise.all(clients.map((certificate) => ask(url, certificate)));
      expect(answers.map(({ status }) => status)).toEqual(expected);
      const probes = await Promise.all(clients.map((one) => ask(`${url}/-/healthy`, one)));
      expect(probes.map(({ status }) => status)).toEqual([200, 200, 200]);
    },
  );

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'applies the result of the original certificate check to a resumed %s session',
    async (version) => {
      const { port } = await serve(withTls('RequireAndVerifyClientCert', server, authority.cert));
      for (const [certificate, status] of [
        [none(), 403],
        [unknown(), 403],
        [known(), 200],
      ] as const) {
        const options = { port, rejectUnauthorized: false, maxVersion: version, ...certificate };
        const session = await visit({ ...options });
        expect(session.status).toBe(status);
        const again = await visit({ ...options, session: session.ticket });
        expect(again).toMatchObject({ status, isReused: true });
      }
    },
  );

  it('does not trust an open connection after the client CA has changed', async () => {
    const { url, become } = await serve(
      withTls('RequireAndVerifyClientCert', server, authority.cert),
    );
    const { Agent } = await import('node:https');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    expect((await ask(url, { agent, ...known() })).status).toBe(200);

    become(withTls('RequireAndVerifyClientCert', server, stranger.cert));

    // The server closes the idle connection, perhaps before it has read the next request.
    const again = ask(url, { agent, ...known() }).then(
      ({ status }) => status,
      () => 'closed',
    );
    expect(await again).toBeOneOf([403, 'closed']);
    expect((await ask(url, unknown())).status).toBe(200);
  });

  it('does not trust a connection whose handshake began before the client CA has changed', async () => {
    const { url, port, guarded, become } = await serve(
      withTls('RequireAndVerifyClientCert', server, authority.cert),
    );
    const accepted = once(guarded, 'connection');
    const below = connectPlainly(port, '127.0.0.1');
    await accepted;
    // The server has prepared the connection before it answers this request.
    expect((await ask(url, known())).status).toBe(200);
    become(withTls('RequireAndVerifyClientCert', server, stranger.cert));
    expect((await ask(url, known())).status).toBe(403);

    const late = await visit({ socket: below, rejectUnauthorized: false, ...known() });

    expect(late.status).toBe(403);
  });
});

/** Sends this head of a request. Returns the response, in latin1. */
async function send(port: number, head: string): Promise<string> {
  const socket = connectPlainly(port, '127.0.0.1');
  socket.setEncoding('latin1');
  socket.write(`${head.trimEnd()}\r\nConnection: close\r\n\r\n`, 'latin1');
  return await text(socket);
}

/** Sends one request over a connection that may resume a session. */
async function visit(options: ConnectionOptions) {
  const socket: TLSSocket = connect({ host: '127.0.0.1', ...options });
  let ticket: Buffer | undefined;
  socket.on('session', (session: Buffer) => {
    ticket = session;
  });
  await once(socket, 'secureConnect');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  const isReused = socket.isSessionReused();
  const answer = await text(socket);
  const [, status] = /^HTTP\/1\.1 (\d+)/.exec(answer) ?? [];
  return { status: Number(status), ticket, isReused };
}

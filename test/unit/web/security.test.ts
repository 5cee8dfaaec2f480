import bcrypt from 'bcrypt';
import { once } from 'node:events';
import { Agent } from 'node:https';
import { connect as connectPlainly } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ClientAuth, Protection } from '../../../src/domain/options.ts';
import type { WebContent } from '../../../src/web/content.ts';
import { ask } from '../../support/ask.ts';
import { type Certificate, makeCertificate } from '../../support/certificates.ts';
import { pieces } from '../../support/pieces.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { startWeb, WITHOUT_PROJECTS } from '../../support/web.ts';

const PASSWORD = 'open:sesame ü';
const OPEN: Protection = { tls: undefined, users: new Map() };
const HASH = bcrypt.hashSync(PASSWORD, 4);
const WITH_LOGIN: Protection = { ...OPEN, users: new Map([['alice', HASH]]) };
const BOB = new Map([['bob', bcrypt.hashSync('other', 4)]]);

const basic = (user: string, password: string) => ({
  headers: {
    authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
  },
});
const ALICE = basic('alice', PASSWORD);

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

/** Starts the web server with a protection that the test can change. */
async function serve(
  first: Protection,
  content: Partial<WebContent> = {},
  allowedHosts = (): readonly string[] => [],
) {
  let now = first;
  const listeners: (() => void)[] = [];
  const { url } = await startWeb(content, {
    allowedHosts,
    protection: {
      current: () => now,
      onChange: (listener) => {
        listeners.push(listener);
      },
    },
  });
  return {
    url,
    port: Number(new URL(url).port),
    become: (next: Protection) => {
      now = next;
      for (const listener of listeners) listener();
    },
  };
}

function withTls(clientAuth: ClientAuth, { cert, key } = server, ca?: string): Protection {
  return { ...OPEN, tls: { context: { cert, key, ca }, clientAuth } };
}

/** Sends the head of a request, in latin1. Returns the answer. */
async function send(port: number, head: string): Promise<string> {
  const socket = connectPlainly(port, '127.0.0.1');
  socket.setEncoding('latin1');
  socket.write(`${head.trimEnd()}\r\nConnection: close\r\n\r\n`, 'latin1');
  return await text(socket);
}

const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+) /.exec(answer)?.[1]);

describe('a server with users', () => {
  it('admits the right password, and answers other requests 401 with WWW-Authenticate', async () => {
    const { url } = await serve(WITH_LOGIN);

    expect((await ask(`${url}/metrics`, ALICE)).status).toBe(200);
    const refused = await ask(`${url}/metrics`);
    expect(refused).toMatchObject({
      status: 401,
      headers: {
        'www-authenticate': expect.stringContaining('Basic realm='),
        'content-type': 'application/json',
      },
    });
    expect(JSON.parse(refused.text)).toHaveProperty('error');
  });

  it.each([
    ['a scheme in another case', ALICE.headers.authorization.replace('Basic', 'bASIC'), 200],
    ['a wrong password', basic('alice', 'other'), 401],
    ["somebody else's password", basic('bob', PASSWORD), 401],
    ['a name that nobody has', basic('carol', PASSWORD), 401],
    ['a NUL behind the password', basic('alice', `${PASSWORD}\0`), 401],
    ['another scheme', 'Bearer abc', 401],
    ['no colon', `Basic ${Buffer.from('alice').toString('base64')}`, 401],
  ])('answers a login with %s twice as expected', async (_, login, status) => {
    const { url } = await serve({ ...OPEN, users: new Map([...WITH_LOGIN.users, ...BOB]) });
    const options = typeof login === 'string' ? { headers: { authorization: login } } : login;
    for (let n = 0; n < 2; n += 1) expect((await ask(url, options)).status).toBe(status);
  });

  it.each([
    ['/-/healthy', '/-/ready', '/-/healthy?from=probe', '/-/ready?x'],
    ['/-/%68ealthy', '/%2D/ready', 'http://other/-/healthy', 'https://[::1]:1/-/ready?x'],
    ['/metrics/../-/ready', '/-/./healthy'],
  ])('answers a probe without a login, also in another form: %s', async (...paths) => {
    const { url } = await serve(WITH_LOGIN);
    for (const path of paths)
      expect([path, (await ask(url, { path })).status]).toEqual([path, 200]);
  });

  it.each([
    ['/', 200],
    ['/metrics?a=/../b&c=\\', 200],
    ['/%6Detric%73', 200],
    ['//metrics', 404],
    ['/metrics/', 404],
    ['/-/healthy/', 404],
    ['//-/healthy', 404],
    ['/-/healthy%3fx', 404],
    ['/-%2fhealthy', 404],
    ['/-/healthy/../../metrics', 200],
    ['/-/healthy/%2e%2E/%2E./metrics', 200],
    ['/metrics?/-/healthy', 200],
    ['/metrics#/-/healthy', 200],
    ['/projects/a%2Fb%20%c3%bc%25', 200],
    ['http://x', 200],
    ['https://x:1?/-/healthy', 200],
    ['http://[::1]/metrics', 200],
    ['http://user@other/metrics', 200],
  ])('requires a login for %s, and answers it with %d', async (target, status) => {
    const ids = ['a/b ü%', '100%', '%2e%2e'];
    const { port } = await serve(WITH_LOGIN, {
      store: { ...WITHOUT_PROJECTS.store, projects: async () => ids },
    });
    const get = `GET ${target} HTTP/1.1\r\nHost: x`;
    expect(statusOf(await send(port, get))).toBe(401);
    const login = `Authorization: ${ALICE.headers.authorization}`;
    expect(statusOf(await send(port, `${get}\r\n${login}`))).toBe(status);
  });

  it.each([
    ['/-/healthy\\..\\..\\metrics', '/a\\b', '*', 'ftp://other/-/healthy'],
    ['http:///\\/-/healthy', 'http://', 'http://x:99999/'],
  ])('answers 400 to a malformed target: %j', async (...targets) => {
    const { port } = await serve(WITH_LOGIN);
    for (const target of targets) {
      const answer = await send(port, `GET ${target} HTTP/1.1\r\nHost: x`);
      expect(target + answer).toMatch(/HTTP\/1\.1 400 [^]*\r\n\r\n\{"error":/);
    }
  });

  it.each([
    ['\u00be/metrics?', 'x/metrics', 'x:1/', 'x#', 'a@b', '[x]', 'x:70000', 'a b', '0/?aaaa'],
    [':1', 'x:y', 'x:-1', 'x:65536', 'x/', 'x?', 'x\\', '[::1', '[1.2.3.4]', '1.2.3.4.5'],
    ['[::1%25eth0]', '::1', 'x,y', '%41', '0/-/healthy'],
  ])('never answers by a Host that changes the path: %j', async (...hosts) => {
    const { port } = await serve(WITH_LOGIN);
    for (const host of hosts) {
      const answer = await send(port, `GET /metrics HTTP/1.1\r\nHost: ${host}`);
      expect([host, [400, 401].includes(statusOf(answer))]).toEqual([host, true]);
    }
  });

  it('answers HTTP/1.0 without a Host', async () => {
    const { port } = await serve(WITH_LOGIN);
    expect(statusOf(await send(port, 'GET /-/ready HTTP/1.0'))).toBe(200);
  });

  it('closes all connections when a user is removed, and rejects the user', async () => {
    const [asked, rendered] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
    const renderMetrics = () => {
      asked.resolve();
      return pieces(rendered.promise);
    };
    const { url, become } = await serve(WITH_LOGIN, { renderMetrics });
    const scrape = ask(`${url}/metrics`, ALICE).catch(({ message }: Error) => message);
    await asked.promise;

    become({ ...OPEN, users: BOB });
    rendered.resolve('');

    expect(await scrape).toBe('socket hang up');
    expect((await ask(url, ALICE)).status).toBe(401);
    expect((await ask(url, basic('bob', 'other'))).status).toBe(200);
  });

  /** Makes the next check of a login wait until it is `released`. */
  function holdLogin() {
    const [hashing, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // oxlint-disable-next-line typescript/no-misused-promises -- this one of its overloads is called
    const slowly = vi.spyOn(bcrypt, 'compare').mockImplementationOnce(async (password, hash) => {
      hashing.resolve();
      await released.promise;
      return bcrypt.compareSync(password, hash);
    });
    onTestFinished(() => slowly.mockRestore());
    return { hashing, released };
  }

  it('does nothing for a user that is removed while the login is checked', async () => {
    const { hashing, released } = holdLogin();
    const reload = vi.fn<WebContent['reload']>();
    const { url, become } = await serve(WITH_LOGIN, { isLifecycleEnabled: () => true, reload });
    const alice = ask(`${url}/-/reload`, { method: 'POST', ...ALICE }).catch(() => undefined);
    await hashing.promise;
    become({ ...OPEN, users: BOB });
    released.resolve();
    await alice;
    expect((await ask(url, ALICE)).status).toBe(401);
    expect(reload).not.toHaveBeenCalled();
  });

  it('does nothing for clients that leave while the login is checked', async () => {
    const { hashing, released } = holdLogin();
    const reload = vi.fn<WebContent['reload']>();
    const { url } = await serve(WITH_LOGIN, { isLifecycleEnabled: () => true, reload });
    const gone = new AbortController();
    // More than there are places for answers.
    const leaving = Array.from({ length: 40 }, () =>
      ask(`${url}/-/reload`, { method: 'POST', ...ALICE, signal: gone.signal }),
    );
    await hashing.promise;
    gone.abort();
    await Promise.allSettled(leaving);
    // Until these are answered, the server has noticed who left.
    for (let n = 0; n < 2; n += 1) await ask(`${url}/-/healthy`);
    released.resolve();
    expect((await ask(url, ALICE)).status).toBe(200);
    expect(reload).not.toHaveBeenCalled();
  });

  it('rejects a removed user also if another user has the same hash', async () => {
    const both = new Map([
      ['alice', HASH],
      ['bob', HASH],
    ]);
    const { url, become } = await serve({ ...OPEN, users: both });
    expect((await ask(url, basic('bob', PASSWORD))).status).toBe(200);
    become(WITH_LOGIN);
    expect((await ask(url, basic('bob', PASSWORD))).status).toBe(401);
  });

  it('checks a right password once, a wrong one and one of an unknown user each time', async () => {
    const compare = vi.spyOn(bcrypt, 'compare');
    onTestFinished(() => compare.mockRestore());
    const { url } = await serve(WITH_LOGIN);
    const checksOf = async (user: string, password: string, times = 1) => {
      compare.mockClear();
      await Promise.all(Array.from({ length: times }, () => ask(url, basic(user, password))));
      return compare.mock.calls.length;
    };
    expect(await checksOf('alice', PASSWORD, 3)).toBe(1);
    expect(await checksOf('alice', PASSWORD)).toBe(0);
    for (const user of ['alice', 'alice', 'nobody', 'nobody']) {
      expect(await checksOf(user, 'wrong')).toBe(1);
    }
  });

  it('answers a flood of wrong passwords with 503, and still answers a known login and probes', async () => {
    const slow = bcrypt.hashSync(PASSWORD, 7);
    const { url } = await serve({ ...OPEN, users: new Map([['alice', slow]]) });
    expect((await ask(url, ALICE)).status).toBe(200);

    const turnedAway = Promise.withResolvers<void>();
    const flood = Array.from({ length: 60 }, async (_, n) => {
      const { status, headers } = await ask(url, basic('alice', String(n)));
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

describe('a server with TLS', () => {
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

  it('finishes the open answers when the certificate is renewed', async () => {
    const [asked, rendered] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
    const renderMetrics = () => {
      asked.resolve();
      return pieces(rendered.promise);
    };
    const { url, become } = await serve(withTls('NoClientCert'), { renderMetrics });
    const scrape = ask(`${url}/metrics`);
    await asked.promise;
    become(withTls('NoClientCert', renewed));
    rendered.resolve('all_of_it 1\n');
    expect((await scrape).text).toBe('all_of_it 1\n');
  });

  it('answers under any name: the certificate does not contain the name of another site', async () => {
    const { url } = await serve(withTls('NoClientCert'));
    expect((await ask(url, { headers: { host: 'evil.example' } })).status).toBe(200);
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

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'trusts neither a connection nor a %s session from before a change of the client CA',
    async (maxVersion) => {
      const { url, port, become } = await serve(
        withTls('RequireAndVerifyClientCert', server, authority.cert),
      );
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      onTestFinished(() => agent.destroy());
      expect((await ask(url, { agent, ...known() })).status).toBe(200);
      const options = { port, rejectUnauthorized: false, maxVersion, ...known() };
      const { ticket } = await visit(options);
      // A connection whose handshake has not begun.
      const below = connectPlainly(port, '127.0.0.1');
      await once(below, 'connect');
      expect((await ask(url, known())).status).toBe(200);

      become(withTls('RequireAndVerifyClientCert', server, stranger.cert));

      await expect(visit({ socket: below, ...options })).rejects.toThrow(
        /disconnected|ECONNRESET|EPIPE/,
      );
      expect((await ask(url, { agent, ...known() })).status).toBe(403);
      expect(await visit({ ...options, session: ticket })).toMatchObject({ status: 403 });
      expect((await ask(url, unknown())).status).toBe(200);
    },
  );
});

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
  return { status: statusOf(await text(socket)), ticket, isReused };
}

describe('without a login', () => {
  const CHROMIUM = { 'accept-encoding': 'gzip, deflate', 'accept-language': 'en' };
  const PROMETHEUS_2_42 = {
    'user-agent': 'Prometheus/2.42.0',
    accept:
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    'accept-encoding': 'gzip',
    'x-prometheus-scrape-timeout-seconds': '10',
  };
  const statusFor = async (url: string, host: string, headers = {}) =>
    (await ask(url, { headers: { host, ...headers } })).status;

  it.each([
    ['127.0.0.1:10570', '10.20.30.40', '[::1]:10570', '[fd00::1]', 'localhost:10570'],
    ['evalwatch:10570', 'evalwatch_1', 'a.localhost', 'EVALWATCH', 'localhost.'],
  ])('answers a browser under the names %j', async (...hosts) => {
    const { url } = await startWeb();
    for (const host of hosts) {
      expect([host, await statusFor(url, host, CHROMIUM)]).toEqual([host, 200]);
    }
  });

  it.each([
    ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', 'local.example'],
    // Another machine in the network can claim these names, and this server listens on the loopback interface.
    ['nas.local', 'evalwatch.corp.internal', 'pi.home.arpa', 'evalwatch.monitoring.svc'],
  ])('answers 421 under the names %j unless they are allowed', async (...hosts) => {
    let allowed: readonly string[] = [];
    const { url } = await startWeb({}, { allowedHosts: () => allowed });
    for (const host of hosts) {
      const refused = await ask(url, { headers: { host } });
      expect([host, refused.status]).toEqual([host, 421]);
      expect(refused.text).toContain(
        `${host} is not a known name of this server: add it to web.allowed_hosts`,
      );
      expect(await statusFor(`${url}/-/ready`, host, CHROMIUM)).toBe(200);
      allowed = [host];
      expect(await statusFor(url, `${host.toUpperCase()}.:1`, CHROMIUM)).toBe(200);
    }
  });

  it.each([
    ['nas.local', 'evalwatch.corp.internal', 'pi.home.arpa'],
    ['evalwatch.monitoring.svc.cluster.local:10570', 'evalwatch.monitoring.svc'],
  ])('answers under the private names %j unless it listens on the loopback', async (...hosts) => {
    const { url } = await startWeb({}, { host: '0.0.0.0' });
    for (const host of hosts) expect(await statusFor(url, host, CHROMIUM)).toBe(200);
    expect(await statusFor(url, 'xlocal.xinternal', CHROMIUM)).toBe(421);
  });

  it.each([PROMETHEUS_2_42, {}, { 'accept-encoding': 'identity' }, { 'accept-encoding': '' }])(
    'answers metrics under any name if the client is not a browser: %j',
    async (headers) => {
      const { url } = await startWeb();
      expect(await statusFor(`${url}/metrics`, 'evalwatch.example.com', headers)).toBe(200);
    },
  );

  it.each([
    CHROMIUM,
    { 'accept-encoding': 'gzip, deflate, br, zstd' },
    { 'accept-encoding': 'deflate' },
    { 'accept-encoding': 'identity', range: 'bytes=0-' },
    { 'accept-encoding': 'gzip', 'accept-language': '' },
    { 'sec-fetch-site': 'same-origin' },
    { ...PROMETHEUS_2_42, ...CHROMIUM },
  ])(
    'answers 421 to a scrape under a foreign name by what can be a browser: %j',
    async (headers) => {
      const { url } = await startWeb();
      expect(await statusFor(`${url}/metrics`, 'evil.example', headers)).toBe(421);
    },
  );
});

describe('a change', () => {
  const HOST = 'evalwatch.internal:10570';
  /** Posts a reload and a poll with these headers. Returns the status, the same of both. */
  async function post(headers: object, host = HOST) {
    const reload = vi.fn<WebContent['reload']>(async () => ({ ok: true, reasons: [] }));
    const pollNow = vi.fn<WebContent['pollNow']>(async () => ({ polled: [], pending: 0 }));
    const { url } = await startWeb(
      { isLifecycleEnabled: () => true, reload, pollNow },
      { host: '0.0.0.0', allowedHosts: () => ['outside.example', 'a.example'] },
    );
    const options = { method: 'POST', headers: { host, ...headers } };
    const { status } = await ask(`${url}/-/reload`, options);
    expect((await ask(`${url}/-/poll`, options)).status).toBe(status);
    const times = status === 200 ? 1 : 0;
    expect([reload, pollNow].map(({ mock }) => mock.calls.length)).toEqual([times, times]);
    return status;
  }

  it.each([
    {},
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'same-origin' },
    { origin: `http://${HOST}` },
    { origin: `http://${HOST.toUpperCase()}`, 'sec-fetch-site': 'same-origin' },
    { origin: 'https://outside.example' },
  ])('is made with %j', async (headers) => {
    expect(await post(headers)).toBe(200);
  });

  it.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'same-origin, cross-site' },
    { 'sec-fetch-site': '' },
    { origin: 'null' },
    { origin: '' },
    { origin: 'http://evil.example' },
    { origin: 'http://evil.example', 'sec-fetch-site': 'same-origin' },
    { origin: 'http://evalwatch.internal' },
    { origin: 'http://evalwatch.internal:10571' },
    { origin: `http://${HOST}/` },
    { origin: `http://${HOST} http://evil.example` },
    { origin: `file://${HOST}` },
  ])('of a page of another site is refused: %j', async (headers) => {
    expect(await post(headers)).toBe(403);
  });

  it.each([
    ['https://b.internal', 'b.internal', 200],
    ['https://b.internal:443', 'b.internal', 200],
    ['http://b.internal:80', 'b.internal', 200],
    ['https://b.internal', 'b.internal:443', 200],
    ['https://b.internal', 'b.internal:80', 403],
  ])('from %s at the host %s is answered %d', async (origin, host, status) => {
    expect(await post({ origin }, host)).toBe(status);
  });
});

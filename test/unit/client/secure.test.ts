import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { createServer as createProxy, type IncomingMessage } from 'node:http';
import { createServer, type Server, type ServerOptions } from 'node:https';
import { connect as connectTo, createServer as createNetServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeCertificate } from '../../support/certificates.ts';
import {
  answering,
  connect,
  failureOf,
  KEY,
  listOptions,
  ofType,
  RUNNING,
  serve,
} from './harness.ts';

const BODY = JSON.stringify([{ id: 'p1', status: 'RUNNING' }]);
const folder = mkdtempSync(join(tmpdir(), 'evalwatch-tls-'));

interface Certificate {
  readonly text: string;
  readonly cert: Buffer;
  readonly key: Buffer;
}

function certificate(name: string, ...options: readonly string[]): Certificate {
  const file = join(folder, `${name}.pem`);
  const keyFile = join(folder, `${name}.key`);
  const making = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  execFileSync(
    'openssl',
    [...making, '-keyout', keyFile, '-out', file, '-subj', '/CN=evalwatch test', ...options],
    { stdio: 'ignore' },
  );
  const cert = readFileSync(file);
  return { text: cert.toString(), cert, key: readFileSync(keyFile) };
}

let good: Certificate;
let elsewhere: Certificate;

beforeAll(() => {
  good = certificate('good', '-addext', 'subjectAltName=IP:127.0.0.1');
  elsewhere = certificate('elsewhere', '-addext', 'subjectAltName=DNS:elsewhere.example');
});

function port(server: { address(): AddressInfo | string | null }): number {
  return (server.address() as AddressInfo).port;
}

async function serveSecurely({
  cert,
  key,
}: Pick<ServerOptions, 'cert' | 'key'>): Promise<{ url: string; server: Server }> {
  const server = createServer({ cert, key }, answering(200, BODY));
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `https://127.0.0.1:${port(server)}`, server };
}

/** Starts a proxy that answers CONNECT with this status, or never if undefined, and records all that it can read. */
async function startProxy(tunnelStatus: number | undefined) {
  const seen: string[] = [];
  const requests: IncomingMessage[] = [];
  const server = createProxy((request, response) => {
    requests.push(request);
    response.end(BODY);
  });
  server.on('connect', (request, socket) => {
    requests.push(request);
    socket.on('error', () => {});
    if (tunnelStatus === undefined) return;
    if (tunnelStatus !== 200) {
      socket.end(`HTTP/1.1 ${tunnelStatus} No\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    const [host, targetPort] = request.url?.split(':') ?? [];
    const target = connectTo(Number(targetPort), host);
    target.on('error', () => {});
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    socket.on('data', (chunk: Buffer) => seen.push(chunk.toString('latin1')));
    socket.pipe(target).pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { proxyUrl: `http://127.0.0.1:${port(server)}`, seen, requests };
}

describe('a TLS certificate', () => {
  it('of a configured authority is trusted', async () => {
    const { url } = await serveSecurely(good);
    const { service } = connect({ baseUrl: url, authorities: good.text });
    expect(await service.list('p', 'prompt', listOptions())).toMatchObject({ unchanged: false });
  });

  it('of a configured authority is trusted, even if the authority above it is not configured', async () => {
    const root = makeCertificate(folder, 'root');
    const issuing = makeCertificate(folder, 'issuing', root);
    const { cert, key } = makeCertificate(folder, 'issued', issuing);
    const { url } = await serveSecurely({ cert: cert + issuing.cert, key });
    const { service } = connect({ baseUrl: url, authorities: issuing.cert });
    expect(await service.list('p', 'prompt', listOptions())).toMatchObject({ unchanged: false });
  });

  it('is checked whatever NODE_TLS_REJECT_UNAUTHORIZED says, also through a proxy', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { url } = await serveSecurely(good);
    const { proxyUrl } = await startProxy(200);
    for (const options of [{}, { proxyUrl }, { proxyUrl: url }]) {
      const { service } = connect({ baseUrl: url, ...options });
      const { reason } = await failureOf(service.list('p', 'prompt', listOptions()));
      expect(reason).toBe('tls');
    }
  });

  it.each<[string, () => Certificate, () => string | undefined]>([
    ['of an unknown authority', () => good, () => undefined],
    ['of another authority than the one in the file', () => good, () => elsewhere.text],
    ['for another host', () => elsewhere, () => elsewhere.text],
  ])('%s is a TLS error, which is not retried', async (_, theirs, authorities) => {
    const { url, server } = await serveSecurely(theirs());
    let connections = 0;
    server.on('connection', () => (connections += 1));
    const { service, events } = connect({ baseUrl: url, authorities: authorities(), retries: 2 });
    const { reason, message } = await failureOf(service.list('p', 'prompt', listOptions()));
    expect(reason).toBe('tls');
    expect(message).not.toContain('--use-system-ca');
    expect(ofType(events, 'api.request_finished')).toMatchObject([{ failure: 'tls' }]);
    expect(connections).toBe(1);
  });

  it('is missing from a server without TLS, which is a TLS error', async () => {
    const { url } = await serve(answering(200, BODY));
    const { service } = connect({ baseUrl: url.replace('http:', 'https:') });
    expect((await failureOf(service.list('p', 'prompt', listOptions()))).reason).toBe('tls');
  });

  it('that never arrives is a network error if the connection is reset', async () => {
    const server = createNetServer((socket) => {
      socket.on('error', () => {}).once('data', () => socket.resetAndDestroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { service } = connect({ baseUrl: `https://127.0.0.1:${port(server)}` });
    expect((await failureOf(service.list('p', 'prompt', listOptions()))).reason).toBe('network');
  });

  it('that arrives after the request was aborted leaves a connection on which nothing is sent', async () => {
    const { server: secure } = await serveSecurely(good);
    let sent = 0;
    secure.on('request', () => (sent += 1));
    const closed = new Promise((resolve) => {
      secure.once('connection', (socket) => socket.once('close', resolve));
    });
    const ended = new Error('time is up');
    const ending = new AbortController();
    const slow = createNetServer((socket) => {
      const target = connectTo(port(secure), '127.0.0.1');
      for (const side of [socket, target]) side.on('error', () => {});
      ending.abort(ended);
      setTimeout(() => socket.pipe(target).pipe(socket), 50);
    });
    slow.listen(0, '127.0.0.1');
    await once(slow, 'listening');
    onTestFinished(() => void slow.close());
    const { service } = connect({
      baseUrl: `https://127.0.0.1:${port(slow)}`,
      authorities: good.text,
      maxRequestsPerSecond: 1,
    });
    const signal = { waits: RUNNING.waits, requests: ending.signal };
    const call = service.list('p', 'prompt', listOptions({ signal }));
    await expect(call).rejects.toBe(ended);
    await closed;
    expect(sent).toBe(0);
  });
});

describe('a proxy', () => {
  it('tunnels HTTPS without receiving the API key in plain text', async () => {
    const { url } = await serveSecurely(good);
    const { proxyUrl, seen, requests } = await startProxy(200);
    const { service } = connect({ baseUrl: url, authorities: good.text, proxyUrl });
    expect(await service.list('p', 'prompt', listOptions())).toMatchObject({ unchanged: false });
    expect(requests.map(({ method, url: target }) => `${method} ${target}`)).toEqual([
      `CONNECT ${url.replace('https://', '')}`,
    ]);
    expect(seen.length).toBeGreaterThan(0);
    expect(JSON.stringify([seen, requests[0]?.rawHeaders])).not.toContain(KEY);
  });

  it('forwards HTTP requests', async () => {
    const { proxyUrl, requests } = await startProxy(200);
    const { service } = connect({ baseUrl: 'http://service.invalid', proxyUrl });
    expect(await service.list('p', 'prompt', listOptions())).toMatchObject({ unchanged: false });
    expect(requests[0]?.url).toBe('http://service.invalid/v2/projects/p/prompts/');
  });

  it.each([403, 407, 502])('that rejects the tunnel with %i is a network error', async (status) => {
    const { proxyUrl } = await startProxy(status);
    const { service } = connect({ baseUrl: 'https://service.invalid', proxyUrl });
    expect((await failureOf(service.list('p', 'prompt', listOptions()))).reason).toBe('network');
  });

  it('that never answers is a timeout', async () => {
    const { proxyUrl } = await startProxy(undefined);
    const { service } = connect({ baseUrl: 'https://service.invalid', proxyUrl, timeoutMs: 300 });
    expect((await failureOf(service.list('p', 'prompt', listOptions()))).reason).toBe('timeout');
  });

  it('that is down is a network error', async () => {
    const { service } = connect({
      baseUrl: 'https://service.invalid',
      proxyUrl: 'http://127.0.0.1:1',
    });
    expect((await failureOf(service.list('p', 'prompt', listOptions()))).reason).toBe('network');
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, expect, it } from 'vitest';
import { requestHeartbeat } from '../../../src/app/heartbeat.ts';
import { ApiError } from '../../../src/monitor/errors.ts';
import { makeCertificate } from '../../support/certificates.ts';

const directory = mkdtempSync(join(tmpdir(), 'evalwatch-heartbeat-'));
afterAll(() => rmSync(directory, { recursive: true }));
const own = makeCertificate(directory, 'own');
const other = makeCertificate(directory, 'other');
const never = new AbortController().signal;

/** Starts an external monitor with the certificate `own` that records the requested paths. */
async function startMonitor() {
  const paths: (string | undefined)[] = [];
  const server = createServer({ cert: own.cert, key: own.key }, ({ url }, response) => {
    paths.push(url);
    response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}/5ecret`,
    paths,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function failureOf(url: string, authorities: string | undefined): Promise<ApiError> {
  const settings = { authorities, proxyUrl: undefined };
  const error: unknown = await requestHeartbeat(url, settings, never).catch(
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApiError)) throw new Error('no ApiError', { cause: error });
  return error;
}

it('a heartbeat trusts the certificates of ca_file', async () => {
  await using monitor = await startMonitor();
  await requestHeartbeat(monitor.url, { authorities: own.cert, proxyUrl: undefined }, never);
  expect(monitor.paths).toEqual(['/5ecret']);
});

it.each([
  ['no ca_file', undefined],
  ['the ca_file of another authority', other.cert],
])(
  'a heartbeat with %s rejects a certificate of an unknown authority, without naming the URL',
  async (_, authorities) => {
    await using monitor = await startMonitor();
    const error = await failureOf(monitor.url, authorities);
    expect(error).toMatchObject({ reason: 'tls' });
    expect(String(error)).not.toMatch(/5ecret|127\.0\.0\.1/);
    expect(monitor.paths).toEqual([]);
  },
);

it.each([
  ['http://127.0.0.1:1/5ecret', 'network', 'ECONNREFUSED'],
  ['http://[::1]:1/5ecret', 'network', /^(ECONNREFUSED|EADDRNOTAVAIL|EAFNOSUPPORT)$/],
  ['http://localhost:1/5ecret', 'network', 'ECONNREFUSED'],
])(
  'the error of a heartbeat to %s contains only the reason and the code',
  async (url, reason, code) => {
    const error = await failureOf(url, undefined);
    expect(error.reason).toBe(reason);
    expect(error.message).toMatch(/^no answer: [A-Z]+$/);
    expect(error.message.slice('no answer: '.length)).toMatch(code);
  },
);

it('the error for the certificate of another host does not contain its name', async () => {
  await using monitor = await startMonitor();
  const error = await failureOf(monitor.url.replace('127.0.0.1', 'localhost'), own.cert);
  expect(error).toMatchObject({
    reason: 'tls',
    message: 'no answer: ERR_TLS_CERT_ALTNAME_INVALID',
  });
});

it('a heartbeat trusts the default authorities in addition to those of ca_file', async () => {
  await using monitor = await startMonitor();
  const module = new URL('../../../src/app/heartbeat.ts', import.meta.url);
  const settings = JSON.stringify({ authorities: other.cert });
  const program = `import { requestHeartbeat } from ${JSON.stringify(module.href)};
    await requestHeartbeat(${JSON.stringify(monitor.url)}, ${settings}, new AbortController().signal);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    env: { NODE_EXTRA_CA_CERTS: own.certFile },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  expect(await text(child.stderr)).toBe('');
  expect(monitor.paths).toEqual(['/5ecret']);
});

it('a heartbeat ends at once when the daemon stops', async () => {
  const stopping = new AbortController();
  // Nothing listens there, so the request waits for its next attempt.
  const requested = requestHeartbeat(
    'http://127.0.0.1:1/5ecret',
    { authorities: undefined, proxyUrl: undefined },
    stopping.signal,
  ).catch((reason: unknown) => reason);
  const reason = new Error('stopping');
  stopping.abort(reason);
  expect(await requested).toBe(reason);
});

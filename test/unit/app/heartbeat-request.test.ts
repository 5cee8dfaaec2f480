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

it('a heartbeat trusts the certificates of ca_file', async () => {
  await using monitor = await startMonitor();
  await requestHeartbeat(monitor.url, { authorities: own.cert, proxyUrl: undefined }, never);
  expect(monitor.paths).toEqual(['/5ecret']);
});

it('a heartbeat with the ca_file of another authority is refused, without naming the URL', async () => {
  await using monitor = await startMonitor();
  const settings = { authorities: other.cert, proxyUrl: undefined };
  const error: unknown = await requestHeartbeat(monitor.url, settings, never).catch(
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ reason: 'tls' });
  expect(String(error)).not.toMatch(/5ecret|127\.0\.0\.1/);
  expect(monitor.paths).toEqual([]);
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

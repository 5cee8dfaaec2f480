import { once } from 'node:events';
import { appendFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import { UNHURRIED, workspace } from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import { healthCheck, patientHealthCheck } from '../support/health-check.ts';
import { startAlpha } from '../support/service.ts';

const hasIpv6 = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .some(({ address }) => address === '::1');

describe('the health check of the image', UNHURRIED, () => {
  const hosts = ['127.0.0.2', '0.0.0.0', 'localhost', ...(hasIpv6 ? ['[::1]', '[::]'] : [])];

  it.each(hosts)(
    'reaches a daemon that listens on %s as set in EVALWATCH_WEB_LISTEN',
    async (host) => {
      await using service = await startAlpha();
      const listen = `${host}:${await freePort()}`;
      await using place = await workspace(service.url, { web: { listen } });
      await using _ = await startHere(place);
      expect(await patientHealthCheck({ EVALWATCH_WEB_LISTEN: listen })).toEqual({
        code: 0,
        stderr: '',
      });
    },
  );

  it('ignores an invalid option in the configuration, but fails on a syntax error', async () => {
    await using service = await startAlpha();
    const listen = `127.0.0.2:${await freePort()}`;
    await using place = await workspace(service.url, { web: { listen }, log: { level: 'loud' } });
    await using running = await workspace(service.url, { web: { listen } });
    await using _ = await startHere(running);
    expect(await patientHealthCheck({ EVALWATCH_CONFIG: place.config })).toEqual({
      code: 0,
      stderr: '',
    });

    await appendFile(place.config, ']');
    const { code, stderr } = await healthCheck({ EVALWATCH_CONFIG: place.config });
    expect(code).toBe(1);
    expect(stderr).toContain(`${place.config}:1:`);
  });

  it('uses the default address if the configuration file does not exist', async ({ skip }) => {
    const server = createServer((_, response) => response.end());
    const listening = once(server.listen(10_570, '127.0.0.1'), 'listening');
    if (!(await listening.then(() => true).catch(() => false))) skip('somebody has the port');
    expect(await patientHealthCheck({ EVALWATCH_CONFIG: '/nowhere/x.yaml' })).toEqual({
      code: 0,
      stderr: '',
    });
    server.close();
    await once(server, 'close');
    expect(await healthCheck({ EVALWATCH_CONFIG: '/nowhere/x.yaml' })).toEqual({
      code: 1,
      stderr: expect.stringContaining('/nowhere/x.yaml:1:1: '),
    });
  });

  it('reports the address that does not answer, and rejects port 0', async () => {
    const port = await freePort();
    expect(await healthCheck({ EVALWATCH_WEB_LISTEN: `0.0.0.0:${port}` })).toEqual({
      code: 1,
      stderr: `no healthy answer (127.0.0.1 port ${port}: ECONNREFUSED)\n`,
    });
    expect(await healthCheck({ EVALWATCH_WEB_LISTEN: '127.0.0.1:0' })).toEqual({
      code: 1,
      stderr:
        'web.listen has port 0 (any free port): set a fixed port so that the health check can find it\n',
    });
  });
});

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
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

  it('reports the address that does not answer', async () => {
    const listen = `0.0.0.0:${await freePort()}`;
    const { code, stderr } = await healthCheck({ EVALWATCH_WEB_LISTEN: listen });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      new RegExp(`^no healthy answer at ${listen} \\(http: .*ECONNREFUSED.*\\)\\n$`),
    );
  });

  it('reports an answer that is not 200', async () => {
    const server = createServer((_, response) => response.writeHead(404).end());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const { code, stderr } = await healthCheck({ EVALWATCH_WEB_LISTEN: `127.0.0.1:${port}` });
    server.close();
    expect(code).toBe(1);
    expect(stderr).toContain('(http: 404; https: ');
  });
});

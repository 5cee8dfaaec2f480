import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { DEFAULT_KEY } from '../../../src/simulator/world/key-ring.ts';
import { parseFaults } from '../../../src/simulator/faults/fault-text.ts';
import { startSimulator } from '../../../src/simulator/server.ts';
import { World } from '../../../src/simulator/world/world.ts';
import { KEY, PROMPTS, simulate } from './simulation.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

describe('A simulator', () => {
  it('serves the default projects with the default key when given only a world', async () => {
    const simulator = await startSimulator({ world: new World({ now: () => Date.now() }) });

    const statuses = [];
    for (const project of ['checkout-bot', 'search-ranking', 'support-triage']) {
      const url = `${simulator.url}/v2/projects/${project}/prompts/`;
      statuses.push((await fetch(url, { headers: { 'x-api-key': DEFAULT_KEY } })).status);
    }
    await simulator.close();

    expect(statuses).toEqual([200, 200, 200]);
  });

  it('changes the world by itself when tickMs is set', async () => {
    const { world } = await simulate({ tickMs: 5 });

    await expect.poll(() => world.moves().length, PATIENCE).toBeGreaterThan(3);
  });

  it('rejects with EADDRINUSE when its port is taken', async () => {
    const { url } = await simulate();

    await expect(simulate({ port: Number(new URL(url).port) })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    });
  });

  it.each(['hang', 'delay=1h', 'drip=1', 'drip-headers=1'])(
    'closes all connections at once during %s',
    async (text) => {
      const world = new World({ now: () => Date.now() });
      const simulator = await startSimulator({ world, keys: KEY, faults: parseFaults(text) });
      const sockets = Array.from({ length: 20 }, () => {
        const socket = connect(Number(new URL(simulator.url).port), '127.0.0.1');
        socket.on('error', () => undefined);
        socket.resume();
        socket.write(`GET ${PROMPTS} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${KEY}\r\n\r\n`);
        return socket;
      });
      await expect.poll(() => simulator.requests.inFlight, PATIENCE).toBe(20);

      await Promise.all([simulator.close(), ...sockets.map((socket) => once(socket, 'close'))]);

      await expect.poll(() => simulator.requests.inFlight, PATIENCE).toBe(0);
    },
  );
});

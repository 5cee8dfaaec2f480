import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that Linux and macOS give to connections and to servers that ask for any: those could be taken before use. */
const FIRST = 20_000;
const LAST = 32_767;

/** Returns a port on which nobody listens, at any address of this machine. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST + 1);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port), 'listening');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return false;
    throw error;
  }
  server.close();
  await once(server, 'close');
  return true;
}

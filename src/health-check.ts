import { once } from 'node:events';
import { get as getPlain, type IncomingMessage } from 'node:http';
import { get as getSecure } from 'node:https';
import { DEFAULT_LISTEN, type ListenAddress, parseListen } from './config/values/address.ts';
import type { Checked } from './config/values/checked.ts';
import { ConfigError } from './config/config-error.ts';
import { configFile, environment } from './config/environment.ts';
import { localAddresses, readListenAddress } from './config/listen-address.ts';
import { PATHS } from './web/paths.ts';

// The health check of the container image. Exits 0 if the daemon in the same container is alive, otherwise 1 with the
// reason on stderr. The image sets the environment variables.

const TIMEOUT_MS = 4000;

/** Resolves to undefined if the daemon is alive, otherwise to the reason why that is not known. */
async function findFault(): Promise<string | undefined> {
  const env = environment();
  try {
    return await findFaultOf(await readListenAddress(configFile(undefined, env), env));
  } catch (error) {
    if (!(error instanceof ConfigError) || error.reason !== 'unreadable') throw error;
    // The daemon may use another file, named by `--config`, which is not known here.
    const isAlive = (await findFaultOf(parseListen(DEFAULT_LISTEN))) === undefined;
    return isAlive ? undefined : error.message;
  }
}

async function findFaultOf({ value, fault }: Checked<ListenAddress>): Promise<string | undefined> {
  if (fault !== undefined) return `web.listen ${fault}`;
  const { host, port } = value;
  if (port === 0)
    return 'web.listen has port 0 (any free port): set a fixed port so that the health check can find it';
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const faults: string[] = [];
  for (const address of localAddresses(host)) {
    // HTTP first. The web configuration file may have changed since the daemon started, so both are tried.
    for (const get of [getPlain, getSecure]) {
      const answer = await request(get, address, port, signal);
      if (answer === 200) return undefined;
      faults.push(`${address} port ${port}: ${answer}`);
    }
  }
  return `no healthy answer (${[...new Set(faults)].join('; ')})`;
}

async function request(
  get: typeof getPlain,
  host: string,
  port: number,
  signal: AbortSignal,
): Promise<number | string | undefined> {
  // /-/healthy needs no login and no client certificate. The server's certificate does not contain this address.
  const options = { host, port, path: PATHS.healthy, rejectUnauthorized: false, signal };
  try {
    const [answer]: readonly IncomingMessage[] = await once(get(options), 'response');
    return answer?.statusCode;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

const fault = await findFault().catch((error: unknown) =>
  error instanceof Error ? error.message : String(error),
);
if (fault !== undefined) process.stderr.write(`${fault}\n`);
process.exit(fault === undefined ? 0 : 1);

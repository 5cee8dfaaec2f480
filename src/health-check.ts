import { once } from 'node:events';
import { get as getPlain, type IncomingMessage } from 'node:http';
import { get as getSecure } from 'node:https';
import {
  type Checked,
  DEFAULT_LISTEN,
  type ListenAddress,
  parseListen,
} from './config/values/address.ts';
import { ConfigError } from './config/config-error.ts';
import { configFile, environment } from './config/environment.ts';
import { localAddresses, readListenAddress } from './config/listen-address.ts';
import { PATHS } from './web/paths.ts';

// The health check of the image, which sets the variables. Exits 0 if the daemon in the same container is alive, else 1
// with the reason.

const TIMEOUT_MS = 4000;

/** Undefined if the daemon is alive, else why it is not known to be. */
async function findFault(): Promise<string | undefined> {
  const env = environment();
  try {
    return await findFaultOf(await readListenAddress(configFile(undefined, env), env));
  } catch (error) {
    if (!(error instanceof ConfigError) || error.reason !== 'unreadable') throw error;
    // The daemon may have another file, of `--config`, which is not known here.
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
    // Plain first. What a web configuration file asks for now need not be what the daemon was started with.
    for (const get of [getPlain, getSecure]) {
      const answer = await ask(get, address, port, signal);
      if (answer === 200) return undefined;
      faults.push(`${address} port ${port}: ${answer}`);
    }
  }
  return `no healthy answer (${[...new Set(faults)].join('; ')})`;
}

async function ask(
  get: typeof getPlain,
  host: string,
  port: number,
  signal: AbortSignal,
): Promise<number | string | undefined> {
  // Probes need no login and no client certificate, and the server's certificate does not name this address.
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

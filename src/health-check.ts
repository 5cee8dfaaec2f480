import { once } from 'node:events';
import { get as getPlain, type IncomingMessage } from 'node:http';
import { get as getSecure } from 'node:https';
import { parseListen } from './config/address.ts';
import { environment, readVariable } from './config/environment.ts';

// For the image, which sets the variable: exits 0 if the daemon in the same container is alive, else 1.
const listen = parseListen(readVariable(environment(), 'EVALWATCH_WEB_LISTEN') ?? '');
const port = listen.value?.port ?? 10570;
// A certificate does not name the loopback, and nobody else listens there. Probes need no login and no certificate.
const options = {
  host: '127.0.0.1',
  port,
  path: '/-/healthy',
  rejectUnauthorized: false,
  signal: AbortSignal.timeout(4000),
};

async function isHealthy(get: typeof getPlain): Promise<boolean> {
  try {
    const [answer]: readonly IncomingMessage[] = await once(get(options), 'response');
    return answer?.statusCode === 200;
  } catch {
    return false;
  }
}

// Whether web.config_file asks for TLS is not known here.
process.exit((await isHealthy(getPlain)) || (await isHealthy(getSecure)) ? 0 : 1);

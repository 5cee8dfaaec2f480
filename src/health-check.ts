import { once } from 'node:events';
import { get as getPlain, type IncomingMessage } from 'node:http';
import { get as getSecure } from 'node:https';
import { environment, readVariable } from './config/environment.ts';

// The health check of the container image. Exits 0 if the daemon at EVALWATCH_WEB_LISTEN, which the image sets, is alive,
// otherwise 1 with the reason on stderr.

const listen = readVariable(environment(), 'EVALWATCH_WEB_LISTEN') ?? '127.0.0.1:10570';
// /-/healthy needs no login and no client certificate. The server's certificate does not contain this address.
const options = { rejectUnauthorized: false, signal: AbortSignal.timeout(4000) };
const faults: string[] = [];
for (const [get, scheme] of [[getPlain, 'http'] as const, [getSecure, 'https'] as const]) {
  try {
    const request = get(`${scheme}://${listen}/-/healthy`, options);
    const [answer]: readonly IncomingMessage[] = await once(request, 'response');
    if (answer?.statusCode === 200) process.exit(0);
    faults.push(`${scheme}: ${answer?.statusCode}`);
  } catch (error) {
    faults.push(`${scheme}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
process.stderr.write(`no healthy answer at ${listen} (${faults.join('; ')})\n`);
process.exit(1);

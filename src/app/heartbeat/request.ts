import { getCACertificates } from 'node:tls';
import { createDispatcher } from '../../client/connections.ts';
import { exchange } from '../../client/exchange.ts';
import { withRetries } from '../../client/retry.ts';
import { ApiError, type ApiFailureReason } from '../../monitor/errors.ts';
import type { ServiceSettings } from '../../monitor/ports/service.ts';
import { systemClock } from '../clock.ts';
import { version } from '../version.ts';

/** Time limit of one attempt. All attempts together take less than a minute. */
const TIMEOUT_MS = 10_000;
const RETRIES = 2;
/** Maximum size of an answer, which is read but not used. */
const MAX_BYTES = 64 * 1024;

/**
 * Requests the address of a heartbeat, by the proxy of the service if there is one. Trusts the default CA certificates and
 * those of `ca_file`. Follows no redirect, and sends no API key. Rejects with the signal's reason when it aborts.
 * @throws {ApiError} if no attempt was answered with 2xx; its message has no part of the address, nor of what it resolves to
 */
export async function requestHeartbeat(
  url: string,
  { authorities, proxyUrl }: Pick<ServiceSettings, 'authorities' | 'proxyUrl'>,
  signal: AbortSignal,
): Promise<void> {
  const { origin, pathname, search } = new URL(url);
  const dispatcher = createDispatcher({
    clock: systemClock,
    origin,
    timeoutMs: TIMEOUT_MS,
    authorities: authorities && [...getCACertificates(), authorities].join('\n'),
    proxyUrl,
  });

  async function attempt(): Promise<void> {
    const { head, body } = await exchange(dispatcher, {
      origin,
      path: pathname + search,
      headers: { 'user-agent': `evalwatch/${version}` },
      timeoutMs: TIMEOUT_MS,
      clock: systemClock,
      maxBytes: MAX_BYTES,
      // No text of the exchange is used.
      scrub: (text) => text,
      onSent: () => {},
      signal,
    });
    if (head === undefined && body instanceof ApiError) throw withoutAddress(body);
    const statusCode = head?.statusCode ?? 0;
    if (statusCode >= 200 && statusCode < 300) return;
    throw new ApiError(reasonOf(statusCode), `the answer is ${statusCode}`, { statusCode });
  }

  try {
    await withRetries(attempt, {
      retries: RETRIES,
      signal: { waits: signal },
      clock: systemClock,
      random: Math.random,
      onWait: () => {},
    });
  } finally {
    await dispatcher.destroy();
  }
}

/** Messages of connections name hosts, IP addresses, ports and the names of certificates. */
function withoutAddress({ reason, details }: ApiError): ApiError {
  return new ApiError(reason, `no answer: ${details.code ?? reason}`);
}

function reasonOf(statusCode: number): ApiFailureReason {
  if (statusCode >= 500) return 'server_error';
  if (statusCode === 429) return 'rate_limited';
  return statusCode >= 400 ? 'client_error' : 'redirect';
}

import { getCACertificates } from 'node:tls';
import { ApiError } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ServiceSettings } from '../monitor/ports/service.ts';
import { createDispatcher } from './connections.ts';
import { exchange, type ResponseHead } from './exchange.ts';

/** Time limit of a request, from its connection to the end of the answer. */
export const TIMEOUT_MS = 10_000;
/** Maximum size of an answer: a page to log in, in place of the receiver, must be seen. */
const MAX_BYTES = 1024 * 1024;

interface Once {
  readonly headers: Readonly<Record<string, string>>;
  /** Sent by POST; undefined for a GET. */
  readonly content?: string | undefined;
  readonly network: Pick<ServiceSettings, 'authorities' | 'proxyUrl'>;
  readonly clock: Pick<Clock, 'monotonic' | 'timeout'>;
  readonly signal: AbortSignal;
}

/** An answer of any status, and its body; undefined if that is too large or not complete. */
export interface OnceAnswer extends ResponseHead {
  readonly body: Buffer | undefined;
}

/**
 * Sends one request to an address that is a secret, on a connection of its own and by the proxy of the service if there is one.
 * Trusts the default CA certificates and those of `ca_file`. Follows no redirect, and sends no API key. Rejects with the signal's
 * reason when it aborts.
 * @throws {ApiError} without an answer; its message has no part of the address, nor of what it resolves to
 */
export async function requestOnce(url: string, options: Once): Promise<OnceAnswer> {
  const { authorities, proxyUrl } = options.network;
  const { origin, pathname, search } = new URL(url);
  const dispatcher = createDispatcher({
    origin,
    timeoutMs: TIMEOUT_MS,
    authorities: authorities && [...getCACertificates(), authorities].join('\n'),
    proxyUrl,
  });
  try {
    const { head, body } = await exchange(dispatcher, {
      ...options,
      origin,
      path: pathname + search,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_BYTES,
      // No text of the exchange is used.
      scrub: (text) => text,
      onSent: () => {},
    });
    if (head !== undefined) return { ...head, body: Buffer.isBuffer(body) ? body : undefined };
    if (Buffer.isBuffer(body)) throw new TypeError('a body has a head');
    // Its message names hosts, IP addresses, ports and the names of certificates.
    const { code } = body.details;
    throw new ApiError(body.reason, `no answer: ${code ?? body.reason}`, { code });
  } finally {
    await dispatcher.destroy();
  }
}

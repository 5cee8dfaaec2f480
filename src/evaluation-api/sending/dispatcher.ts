import { Pool, ProxyAgent, type Dispatcher } from 'undici';
import type { ServiceSettings } from '../../monitor/ports/service.ts';

export interface ConnectionOptions extends Pick<
  ServiceSettings,
  'timeoutMs' | 'authorities' | 'proxyUrl'
> {
  /** Origin of the service; only this is ever connected to. */
  readonly origin: string;
}

/**
 * Creates the pool of connections to the service, kept alive between requests. The gate limits their number. The pool
 * has no limit, because a connection attempt whose request has timed out goes on for a moment and would use the limit
 * up.
 */
export function createDispatcher(options: ConnectionOptions): Dispatcher {
  const { origin, timeoutMs, authorities, proxyUrl } = options;
  const tls = {
    // Otherwise NODE_TLS_REJECT_UNAUTHORIZED=0 would have the key sent to anybody.
    rejectUnauthorized: true,
    ...(authorities !== undefined && { ca: authorities, allowPartialTrustChain: true }),
    allowH2: false,
  };
  // The exchange has its own deadline, which covers headers and body.
  const pooling = {
    allowH2: false,
    pipelining: 1,
    connectTimeout: timeoutMs,
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  if (proxyUrl === undefined) return new Pool(origin, { ...pooling, connect: tls });
  return new ProxyAgent({
    ...pooling,
    uri: proxyUrl,
    requestTls: tls,
    proxyTls: tls,
    clientFactory: (proxy, connecting) =>
      new Pool(proxy, { ...connecting, headersTimeout: timeoutMs }),
  });
}

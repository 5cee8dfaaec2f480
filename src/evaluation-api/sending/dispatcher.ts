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
 * The connections to the service, kept alive between requests. How many there are is up to the gate. One that could not be
 * made before its request timed out goes on trying for a moment, so the pool itself has no limit that it could use up.
 */
export function createDispatcher(options: ConnectionOptions): Dispatcher {
  const { origin, timeoutMs, authorities, proxyUrl } = options;
  const tls = { ...(authorities !== undefined && { ca: authorities }), allowH2: false };
  // A deadline of our own covers the whole of an exchange.
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

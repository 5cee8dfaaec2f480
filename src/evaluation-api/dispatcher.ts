import { readFileSync } from 'node:fs';
import { Pool, ProxyAgent, type Dispatcher } from 'undici';

export interface ConnectionOptions {
  /** Where the service is; only this is ever connected to. */
  readonly origin: string;
  readonly timeoutMs: number;
  /** Path of a PEM file whose authorities are trusted instead of the usual ones. */
  readonly caFile: string | undefined;
  /** Proxies that the environment names are not used. */
  readonly proxyUrl: string | undefined;
}

/**
 * The connections to the service, kept alive between requests. How many there are is up to the gate. One that could not be
 * made before its request timed out goes on trying for a moment, so the pool itself has no limit that it could use up.
 * @throws {Error} if the file of authorities cannot be read
 */
export function createDispatcher(options: ConnectionOptions): Dispatcher {
  const { origin, timeoutMs, proxyUrl } = options;
  const tls = { ...readAuthorities(options.caFile), allowH2: false };
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

function readAuthorities(caFile: string | undefined): { readonly ca?: string } {
  if (caFile === undefined) return {};
  try {
    return { ca: readFileSync(caFile, 'utf8') };
  } catch (error) {
    throw new Error(`the file of authorities ${caFile} cannot be read`, { cause: error });
  }
}

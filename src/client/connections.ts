import dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import { Pool, ProxyAgent, type Dispatcher } from 'undici';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ServiceSettings } from '../monitor/ports/service.ts';

/** Time without a request after which a connection is closed: longer than usual intervals of schedules. */
const IDLE_MS = 2 * 60 * 1000;
/** Age at which a connection takes no further request, so that a name that has moved is noticed. */
const MAX_AGE_MS = 5 * 60 * 1000;
/** A name that is not resolved fails this much before the request does, so that the error says so. */
const DNS_LEAD_MS = 100;

export interface ConnectionOptions extends Pick<
  ServiceSettings,
  'timeoutMs' | 'authorities' | 'proxyUrl'
> {
  /** Origin of the service; only this is ever connected to. */
  readonly origin: string;
  readonly clock: Pick<Clock, 'timeout'>;
}

/**
 * Creates the pool of connections to the service, kept alive between requests. The gate limits their number. The pool
 * has no limit, because a connection attempt whose request has timed out goes on for a moment and would use the limit
 * up.
 */
export function createDispatcher(options: ConnectionOptions): Dispatcher {
  const { origin, timeoutMs, authorities, proxyUrl, clock } = options;
  const tls = {
    // Otherwise NODE_TLS_REJECT_UNAUTHORIZED=0 would have the key sent to anybody.
    rejectUnauthorized: true,
    ...(authorities !== undefined && { ca: authorities, allowPartialTrustChain: true }),
    allowH2: false,
    lookup: lookupWithin(timeoutMs - Math.min(DNS_LEAD_MS, timeoutMs / 10), clock),
  };
  // The exchange has its own deadline, which covers headers and body.
  const pooling = {
    allowH2: false,
    pipelining: 1,
    connectTimeout: timeoutMs,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    clientTtl: MAX_AGE_MS,
  };
  if (proxyUrl === undefined) return new Pool(origin, { ...pooling, connect: tls });
  return new ProxyAgent({
    ...pooling,
    uri: proxyUrl,
    requestTls: tls,
    proxyTls: tls,
    // For a service without TLS, undici passes no options but how to connect.
    factory: (target, connecting: Pool.Options) => new Pool(target, { ...pooling, ...connecting }),
    clientFactory: (proxy, connecting) =>
      new Pool(proxy, { ...connecting, headersTimeout: timeoutMs }),
  });
}

/** Returns a `dns.lookup` that fails after `ms`: the resolver of the system can wait for minutes. */
function lookupWithin(ms: number, clock: Pick<Clock, 'timeout'>): LookupFunction {
  return (hostname, options, callback) => {
    const late = { code: 'ETIMEDOUT', syscall: 'getaddrinfo', hostname };
    let isLate = false;
    const timer = clock.timeout(ms, () => {
      isLate = true;
      callback(Object.assign(new Error('no answer from DNS'), late), []);
    });
    dns.lookup(hostname, options, (...answer) => {
      timer.cancel();
      if (!isLate) callback(...answer);
    });
  };
}

/** Connections to the service that can be renewed. */
export interface Connections extends Pick<Dispatcher, 'dispatch'> {
  /**
   * Has further requests use new connections, unless the last renewal is younger than this. Requests in flight end on the old
   * ones, which are then closed.
   */
  renew(minAgeMs?: number): void;
  /** Closes all connections at once. */
  destroy(): Promise<void>;
}

export function createConnections(
  open: () => Dispatcher,
  clock: Pick<Clock, 'monotonic'>,
): Connections {
  let current = open();
  let openedAt = clock.monotonic();
  const closing = new Set<Dispatcher>();
  let isDestroyed = false;

  return {
    dispatch: (...args) => current.dispatch(...args),
    renew: (minAgeMs = 0) => {
      const now = clock.monotonic();
      if (isDestroyed || now - openedAt < minAgeMs) return;
      const old = current;
      current = open();
      openedAt = now;
      closing.add(old);
      void old.close().finally(() => closing.delete(old));
    },
    destroy: async () => {
      isDestroyed = true;
      await Promise.all([current, ...closing].map((each) => each.destroy()));
    },
  };
}

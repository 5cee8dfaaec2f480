import { Pool, ProxyAgent, type Dispatcher } from 'undici';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ServiceSettings } from '../monitor/ports/service.ts';

/** Time without a request after which a connection is closed: longer than usual intervals of schedules. */
const IDLE_MS = 2 * 60 * 1000;
/** Age at which a connection takes no further request, so that a name that has moved is noticed. */
const MAX_AGE_MS = 5 * 60 * 1000;

interface ConnectionOptions extends Pick<
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

/** Connections to the service that can be renewed. */
export class Connections {
  readonly #open: () => Dispatcher;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #current: Dispatcher;
  #openedAt: number;
  readonly #closing = new Set<Dispatcher>();
  #isDestroyed = false;

  constructor(open: () => Dispatcher, clock: Pick<Clock, 'monotonic'>) {
    this.#open = open;
    this.#clock = clock;
    this.#current = open();
    this.#openedAt = clock.monotonic();
  }

  dispatch(...call: Parameters<Dispatcher['dispatch']>): boolean {
    return this.#current.dispatch(...call);
  }

  /**
   * Has further requests use new connections, unless the last renewal is younger than this. Requests in flight end on the old
   * ones, which are then closed.
   */
  renew(minAgeMs = 0): void {
    const now = this.#clock.monotonic();
    if (this.#isDestroyed || now - this.#openedAt < minAgeMs) return;
    const old = this.#current;
    this.#current = this.#open();
    this.#openedAt = now;
    this.#closing.add(old);
    void old.close().finally(() => this.#closing.delete(old));
  }

  /** Closes all connections at once. */
  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    await Promise.all([this.#current, ...this.#closing].map((each) => each.destroy()));
  }
}

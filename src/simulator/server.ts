import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { compressed } from './answer.ts';
import { control, isControl } from './control.ts';
import { deliver } from './deliver.ts';
import { acceptsGzip } from './encoding.ts';
import { applyFault } from './faults/fault.ts';
import { createFaultPlan, type FaultPlan, type FaultRule } from './faults/fault-plan.ts';
import { createJournal, type JournalEntry } from './world/journal.ts';
import { createKeyRing, type KeyRing } from './world/key-ring.ts';
import { createRequestLog, type RequestLog } from './request-log.ts';
import { createService, type EtagStyle, keyOf } from './service.ts';
import type { World } from './world/world.ts';

export interface SimulatorOptions {
  readonly world: World;
  /** Default 0: any free port. */
  readonly port?: number | undefined;
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  /** One key for all projects, or the key of each by project id. Default {@link DEFAULT_KEY}. */
  readonly keys?: string | Readonly<Record<string, string>> | undefined;
  /** Time between two steps of the world, ms. Default 0: the caller makes the steps. */
  readonly tickMs?: number | undefined;
  readonly faults?: readonly FaultRule[] | undefined;
  /** Seed of the probabilities of faults. Default 1. */
  readonly faultSeed?: number | undefined;
  /** True keeps an entry for each of the last 100,000 listings served; a function receives them instead. Default false. */
  readonly journal?: boolean | ((entry: JournalEntry) => void) | undefined;
  /** Default `strong`. */
  readonly etag?: EtagStyle | undefined;
  /** Whether to compress answers for clients that accept it. Default false. */
  readonly compression?: boolean | undefined;
}

/** A running simulated Evaluation Service. */
export interface Simulator {
  /** Base address, without a trailing slash. */
  readonly url: string;
  readonly world: World;
  readonly keys: KeyRing;
  readonly faults: FaultPlan;
  /** Empty unless the option `journal` is true. */
  readonly journal: readonly JournalEntry[];
  readonly requests: RequestLog;
  /** Stops the steps, aborts every answer and closes every connection. */
  close(): Promise<void>;
}

/** Longer than any client keeps an idle connection, so that no request is sent on a connection that is closing. */
const KEEP_ALIVE_MS = 75_000;

/**
 * Serves a world like the Evaluation Service does and, for this machine, the endpoints of {@link control}.
 * @throws {Error} of the system, when the port cannot be opened (`EADDRINUSE`)
 */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const { world, host = '127.0.0.1', tickMs = 0 } = options;
  const keys = createKeyRing(options.keys);
  const faults = createFaultPlan(options.faults ?? [], options.faultSeed ?? 1);
  const journal = createJournal(options.journal ?? false);
  const requests = createRequestLog();
  const answerWithoutFault = createService({
    world,
    keys,
    etag: options.etag ?? 'strong',
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume();
    const producedAt = world.now();
    const { answer: faultFree, endpoint, project } = answerWithoutFault(request);
    requests.add(request, response, { at: producedAt, endpoint, project });
    const drawn = endpoint === 'other' ? [] : faults.draw({ endpoint, project });
    const faulty = drawn.reduce(
      (kept, fault) => applyFault(kept, fault, keyOf(request)),
      faultFree,
    );
    const isZipped = options.compression && acceptsGzip(request.headers['accept-encoding'] ?? '');
    const sent = isZipped ? compressed(faulty) : faulty;
    const complete = await deliver(response, sent);
    if (complete && sent.listing !== undefined) {
      journal.record(sent.listing, { producedAt, finishedAt: world.now() }, sent.status === 304);
    }
  }

  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    if (isControl(request)) void control({ world, keys, faults, journal }, request, response);
    else void answer(request, response);
  });
  server.listen(options.port ?? 0, host);
  await once(server, 'listening');
  const ticks = tickMs > 0 ? setInterval(() => world.step(), tickMs).unref() : undefined;

  return {
    url: urlOf(server.address(), host),
    world,
    keys,
    faults,
    journal: journal.entries,
    requests,
    async close() {
      clearInterval(ticks);
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function urlOf(
  address: ReturnType<ReturnType<typeof createServer>['address']>,
  host: string,
): string {
  if (address === null || typeof address === 'string') throw new Error('The server has no port.');
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}

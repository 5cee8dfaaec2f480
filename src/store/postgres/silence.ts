import { Socket } from 'node:net';
import type { Client } from 'pg';
import type { Clock, Timer } from '../../monitor/ports/clock.ts';

/** Interval of the checks of waiting statements, and the wait after which a statement is checked, ms. */
const CHECK_EVERY_MS = 1500;
/** Number of checks in a row that find the server idle and no byte moved, after which a statement is given up. */
const MAX_DENIALS = 2;

/** A connection is silent, although the server answers on a new one and does not run its statement. */
export class SilentConnectionError extends Error {
  override readonly name = 'SilentConnectionError';

  constructor() {
    super('a connection was silent while a new one was answered');
  }
}

/** Distinguishes a dead connection, as behind a firewall that forgot it, from a statement that takes long. */
export interface SilenceWatch {
  /** Resolves to the answer to a statement on this connection. @throws {SilentConnectionError} */
  during<T>(text: string, client: Client, answer: Promise<T>): Promise<T>;
}

interface Waiting {
  readonly text: string;
  readonly client: Client;
  readonly since: number;
  readonly giveUp: (error: Error) => void;
  denials: number;
  traffic: Traffic;
}

/** Bytes that a connection has received and has yet to send. A connection on which either changes is alive. */
interface Traffic {
  readonly received: number;
  readonly unsent: number;
}

/**
 * Selects the statements that this role runs in this database. Statements are compared by their texts, because a pooler
 * hides which connection is whose. The server cuts long texts off.
 */
const UNDER_WAY = `SELECT query FROM pg_catalog.pg_stat_activity
  WHERE usename = session_user AND datname = current_database() AND state = 'active'`;

/** @param open opens another connection to the server */
export function createSilenceWatch(
  open: () => Promise<Client>,
  clock: Pick<Clock, 'monotonic' | 'timeout'>,
): SilenceWatch {
  const waiting = new Set<Waiting>();
  let timer: Timer | undefined;

  function scheduleCheck(): void {
    timer ??= clock
      .timeout(CHECK_EVERY_MS, () => {
        void check().finally(() => {
          timer = undefined;
          if (waiting.size > 0) scheduleCheck();
        });
      })
      .unref();
  }

  async function check(): Promise<void> {
    const now = clock.monotonic();
    const long = [...waiting].filter(({ since }) => now - since >= CHECK_EVERY_MS);
    if (long.length === 0) return;
    const underWay = await askWhatIsUnderWay(open);
    for (const one of long) {
      const traffic = trafficOf(one.client);
      const isDenied =
        underWay !== undefined &&
        traffic.received === one.traffic.received &&
        traffic.unsent === one.traffic.unsent &&
        !underWay.some((text) => one.text.startsWith(text));
      one.traffic = traffic;
      one.denials = isDenied ? one.denials + 1 : 0;
      if (one.denials >= MAX_DENIALS) one.giveUp(new SilentConnectionError());
    }
  }

  return {
    during: async (text, client, answer) => {
      const silent = Promise.withResolvers<never>();
      const since = clock.monotonic();
      const traffic = trafficOf(client);
      const one = { text, client, since, giveUp: silent.reject, denials: 0, traffic };
      waiting.add(one);
      scheduleCheck();
      try {
        return await Promise.race([answer, silent.promise]);
      } finally {
        waiting.delete(one);
      }
    },
  };
}

/** Resolves to undefined if the server does not answer, or does not show its statements. */
async function askWhatIsUnderWay(
  open: () => Promise<Client>,
): Promise<readonly string[] | undefined> {
  try {
    const client = await open();
    try {
      const { rows } = await client.query<{ readonly query: string }>(UNDER_WAY);
      const texts = rows.map(({ query }) => query).filter((text) => text !== '');
      // The list always has this statement, unless texts are hidden.
      return texts.some((text) => UNDER_WAY.startsWith(text)) ? texts : undefined;
    } finally {
      client.end().catch(() => undefined);
    }
  } catch {
    return undefined;
  }
}

/** Counts unsent bytes too: a server starts a prepared statement only after it has all parameters, which can be megabytes. */
function trafficOf(client: Client): Traffic {
  const { stream } = client.connection;
  if (!(stream instanceof Socket)) return { received: 0, unsent: 0 };
  return { received: stream.bytesRead, unsent: stream.writableLength + queuedBelow(stream) };
}

/**
 * Returns the bytes of the current chunk that the system has not taken yet. Node shows them nowhere else: `bytesWritten` and
 * `writableLength` do not change before all is taken, and TLS hands the whole chunk to the socket below at once.
 */
function queuedBelow(stream: Socket): number {
  const carrier: unknown = Reflect.get(stream, '_parent') ?? stream;
  const queued = fieldOf(fieldOf(carrier, '_handle'), 'writeQueueSize');
  return typeof queued === 'number' ? queued : 0;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

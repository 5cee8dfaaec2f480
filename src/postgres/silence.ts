import { Socket } from 'node:net';
import type { Client } from 'pg';

/** How often is looked for statements that have waited as long, ms. */
const LOOK_EVERY_MS = 1500;
/** A statement is given up if the server was asked so often and did nothing about it, and nothing came or went meanwhile. */
const DENIALS = 2;

/** A connection that says nothing, while the server answers on a new one and has no more to do for it: it leads nowhere. */
export class SilentConnectionError extends Error {
  override readonly name = 'SilentConnectionError';

  constructor() {
    super('a connection was silent while a new one was answered');
  }
}

/** Tells a connection that leads nowhere, as firewalls make them, from a statement that takes long. */
export interface SilenceWatch {
  /** What `answer` brings, to a statement on this connection. @throws {SilentConnectionError} */
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

/** What a connection has brought, and has yet to send: while either changes it leads somewhere. */
interface Traffic {
  readonly received: number;
  readonly unsent: number;
}

/**
 * The statements that this role has under way in this database. By their texts, as a pooler hides which connection is whose;
 * these are cut off where the server does not keep more.
 */
const UNDER_WAY = `SELECT query FROM pg_catalog.pg_stat_activity
  WHERE usename = session_user AND datname = current_database() AND state = 'active'`;

/** @param open a new connection to the server */
export function createSilenceWatch(open: () => Promise<Client>): SilenceWatch {
  const waiting = new Set<Waiting>();
  let timer: NodeJS.Timeout | undefined;

  function lookLater(): void {
    timer ??= setTimeout(() => {
      void look().finally(() => {
        timer = undefined;
        if (waiting.size > 0) lookLater();
      });
    }, LOOK_EVERY_MS).unref();
  }

  async function look(): Promise<void> {
    const now = performance.now();
    const long = [...waiting].filter(({ since }) => now - since >= LOOK_EVERY_MS);
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
      if (one.denials >= DENIALS) one.giveUp(new SilentConnectionError());
    }
  }

  return {
    during: async (text, client, answer) => {
      const silent = Promise.withResolvers<never>();
      const since = performance.now();
      const traffic = trafficOf(client);
      const one = { text, client, since, giveUp: silent.reject, denials: 0, traffic };
      waiting.add(one);
      lookLater();
      try {
        return await Promise.race([answer, silent.promise]);
      } finally {
        waiting.delete(one);
      }
    },
  };
}

/** Undefined if it does not answer, or keeps to itself what it does. */
async function askWhatIsUnderWay(
  open: () => Promise<Client>,
): Promise<readonly string[] | undefined> {
  try {
    const client = await open();
    try {
      const { rows } = await client.query<{ readonly query: string }>(UNDER_WAY);
      const texts = rows.map(({ query }) => query).filter((text) => text !== '');
      // It has at least this one.
      return texts.some((text) => UNDER_WAY.startsWith(text)) ? texts : undefined;
    } finally {
      client.end().catch(() => undefined);
    }
  } catch {
    return undefined;
  }
}

/** A server begins with what a prepared statement is given only when it has all of it, which can be megabytes. */
function trafficOf(client: Client): Traffic {
  const { stream } = client.connection;
  if (!(stream instanceof Socket)) return { received: 0, unsent: 0 };
  return { received: stream.bytesRead, unsent: stream.writableLength + queuedBelow(stream) };
}

/**
 * What the system has not yet taken of the chunk that is being written. Node shows it nowhere else: `bytesWritten` and
 * `writableLength` stay the same until it has all, and TLS has handed all of it to the socket below at once.
 */
function queuedBelow(stream: Socket): number {
  const carrier: unknown = Reflect.get(stream, '_parent') ?? stream;
  const queued = fieldOf(fieldOf(carrier, '_handle'), 'writeQueueSize');
  return typeof queued === 'number' ? queued : 0;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

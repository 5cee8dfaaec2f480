import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Name of each statement if it is prepared, or else its beginning. */
const STATEMENTS = {
  'commit of a poll': ['commit_poll', 'WITH fenced AS'],
  settlement: ['settle_failure', 'WITH settled AS'],
} as const;
/** The statement that commits a poll's listings, or the one that settles a failure. */
type Kind = keyof typeof STATEMENTS;

/** Maximum wait on a busy machine, ms. */
const PATIENCE_MS = 120_000;

/** How much of a statement the database gets before its sender stops: nothing, or one half. */
type Part = 'none' | 'half';

/** A statement that has not arrived completely. */
interface Held {
  /** Sends the rest of it, and what the client has sent after it. */
  release(): void;
}

/** A proxy to the database that can hold up a statement; `await using` closes it and its connections. */
export interface Proxy extends AsyncDisposable {
  readonly port: number;
  /** Waits for the next settlement, or commit with a move and without new records, and holds it up. */
  hold(kind: Kind, part: Part): Promise<Held>;
}

/**
 * Whether these bytes hold a statement of this kind whose late execution would show. For a commit: another worker has
 * recorded the same move by then. A commit with new records would be refused because of them.
 */
function isTelling(bytes: Buffer, kind: Kind): boolean {
  if (STATEMENTS[kind].every((text) => !bytes.includes(text))) return false;
  if (kind === 'settlement') return true;
  return bytes.includes('"from_status":') && !bytes.includes('"is_new":true');
}

export async function startProxy(host: string, port: number): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let wanted:
    { readonly kind: Kind; readonly part: Part; readonly caught: (held: Held) => void } | undefined;

  function join(client: Socket): void {
    const server = connect(port, host);
    let held: Buffer[] | undefined;
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        // A held statement is sent first.
        if (held === undefined) other.destroy();
      });
    }
    server.on('data', (bytes) => client.write(bytes));
    client.on('data', (bytes) => {
      if (held !== undefined) {
        held.push(bytes);
        return;
      }
      if (wanted === undefined || !isTelling(bytes, wanted.kind)) {
        server.write(bytes);
        return;
      }
      const { part, caught } = wanted;
      wanted = undefined;
      const at = part === 'half' ? Math.floor(bytes.length / 2) : 0;
      server.write(bytes.subarray(0, at));
      held = [bytes.subarray(at)];
      caught({
        release: () => {
          for (const rest of held ?? []) server.write(rest);
          held = undefined;
          if (client.destroyed) server.end();
        },
      });
    });
  }

  const listener = createServer(join).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    port: (listener.address() as AddressInfo).port,
    hold: (kind, part) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`no ${kind} to hold up`)), PATIENCE_MS);
        const caught = (held: Held) => {
          clearTimeout(timer);
          resolve(held);
        };
        wanted = { kind, part, caught };
      }),
    [Symbol.asyncDispose]: async () => {
      const closed = once(listener, 'close');
      listener.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

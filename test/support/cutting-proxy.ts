import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** TCP proxy whose connections can break at the worst moment. */
export interface CuttingProxy extends AsyncDisposable {
  readonly port: number;
  /** Forwards the next piece of client data, or the one `after` pieces later on any connection, and cuts at its answer. */
  loseAnswer(after?: number): void;
  /** Rejects new connections until `up` is called. The next cut closes both sides of every connection. */
  down(): void;
  up(): void;
  /** Closes the client side of every connection; the server does not notice. */
  cut(): void;
  /**
   * Keeps the open connections, but drops all data on them, as a firewall that has lost its state does. New connections work.
   */
  silence(): void;
  /** Drops the next piece of client data, or the one `after` pieces later, and cuts its connection. */
  loseRequest(after?: number): void;
  /** Does the same, but `deliver` sends the data to the server and waits until the server has answered. */
  delayRequest(after?: number): { readonly deliver: () => Promise<void> };
}

type Trouble = 'answer' | 'request' | { held: (() => Promise<void>) | undefined };

export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  /** Begins after `after` further pieces of client data. */
  let next: { readonly trouble: Trouble; after: number } | undefined;
  let trouble: Trouble | undefined;
  let isDown = false;
  const sockets = new Set<Socket>();
  const cuts = new Set<() => void>();
  const silences = new Set<() => void>();
  const server = createServer((client) => {
    if (isDown) {
      client.destroy();
      return;
    }
    const upstream = connect(target, '127.0.0.1');
    let isCut = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => sockets.delete(socket));
    }
    const cut = () => {
      isCut = true;
      client.destroy();
      if (isDown) for (const socket of sockets) socket.destroy();
    };
    cuts.add(cut);
    let isSilent = false;
    const silence = () => {
      isSilent = true;
    };
    silences.add(silence);
    client.on('data', (data) => {
      if (isSilent) return;
      if (next?.after === 0) {
        ({ trouble } = next);
        next = undefined;
      } else if (next !== undefined) next.after -= 1;
      if (trouble === undefined || trouble === 'answer') {
        upstream.write(data);
        return;
      }
      if (trouble === 'request') upstream.destroy();
      else {
        trouble.held = async () => {
          upstream.write(data);
          await once(upstream, 'data');
        };
      }
      trouble = undefined;
      cut();
    });
    upstream.on('data', (data) => {
      if (isCut || isSilent) return;
      if (trouble !== 'answer') {
        client.write(data);
        return;
      }
      trouble = undefined;
      cut();
      upstream.destroy();
    });
    client.on('close', () => {
      cuts.delete(cut);
      silences.delete(silence);
      if (!isCut) upstream.destroy();
    });
    upstream.on('close', () => client.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    loseAnswer: (after = 0) => {
      next = { trouble: 'answer', after };
    },
    down: () => {
      isDown = true;
    },
    up: () => {
      isDown = false;
    },
    cut: () => {
      for (const cut of cuts) cut();
    },
    silence: () => {
      for (const silence of silences) silence();
    },
    loseRequest: (after = 0) => {
      next = { trouble: 'request', after };
    },
    delayRequest: (after = 0) => {
      const delayed: { held: (() => Promise<void>) | undefined } = { held: undefined };
      next = { trouble: delayed, after };
      return {
        deliver: async () => {
          if (delayed.held === undefined) throw new Error('no request was delayed');
          await delayed.held();
        },
      };
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

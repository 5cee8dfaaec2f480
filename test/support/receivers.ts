import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import type { Certificate } from './certificates.ts';

/** A request that a receiver got. */
interface Received {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

type Listening = Pick<Server, 'address' | 'listen' | 'close'>;

async function listen(server: Listening): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server as Server, 'listening');
  return (server.address() as AddressInfo).port;
}

/**
 * Starts a receiver of HTTP at `http://127.0.0.1:PORT/5ecret/hook`, or of HTTPS.
 * @param answer answers each request once its body has come
 */
export async function startReceiver(
  answer: (response: ServerResponse) => void,
  certificate?: Certificate,
) {
  const received: Received[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    received.push({ method: request.method, path: request.url, headers: request.headers, body });
    answer(response);
  };
  const listener: RequestListener = (...exchange) => void take(...exchange);
  const server =
    certificate === undefined ? createServer(listener) : createTlsServer(certificate, listener);
  const port = await listen(server);
  return {
    url: `http${certificate === undefined ? '' : 's'}://127.0.0.1:${port}/5ecret/hook`,
    port,
    received,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly isEncrypted: boolean;
  readonly user: string | undefined;
  readonly source: string;
}

/** The login that the mail server of tests takes, as an address has it and as it is. */
export const LOGIN = {
  inUrl: 'eval%40example.com:5ecret%3A%25',
  user: 'eval@example.com',
  pass: '5ecret:%',
};

/** Starts a mail server that takes one login. */
export async function startMailServer(options: SMTPServerOptions) {
  const mails: ReceivedMail[] = [];
  const server = new SMTPServer({
    logger: false,
    onAuth: ({ username, password }, _session, callback) => {
      if (username === LOGIN.user && password === LOGIN.pass)
        return callback(null, { user: username });
      callback(Object.assign(new Error('5.7.8 wrong for eval@example.com'), { responseCode: 535 }));
    },
    onData: (stream, session, callback) => {
      const { mailFrom, rcptTo } = session.envelope;
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          isEncrypted: session.secure,
          user: session.user?.toString(),
          source: Buffer.concat(chunks).toString(),
        });
        callback();
      });
    },
    ...options,
  });
  // A client that leaves in the middle is no fault of the test.
  server.on('error', () => {});
  const port = await listen(server.server);
  return {
    port,
    mails,
    [Symbol.asyncDispose]: async () => {
      await new Promise<void>((resolve) => {
        server.close(resolve);
      });
    },
  };
}

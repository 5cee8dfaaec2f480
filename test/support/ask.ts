import { once } from 'node:events';
import { request as plainRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as secureRequest, type RequestOptions } from 'node:https';
import { text } from 'node:stream/consumers';
import { TLSSocket } from 'node:tls';

export interface Asked {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Serial number of the server's certificate. */
  readonly serial: string | undefined;
}

/** Sends a request, by default on a new connection and without verifying the server's certificate. */
export async function ask(url: string, options: RequestOptions = {}): Promise<Asked> {
  const send = url.startsWith('https:') ? secureRequest : plainRequest;
  const request = send(url, { agent: false, rejectUnauthorized: false, ...options });
  const responded = once(request, 'response') as Promise<[IncomingMessage]>;
  request.end();
  const [response] = await responded;
  const { socket, statusCode: status, headers } = response;
  const serial =
    socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.serialNumber : undefined;
  return { status, headers, text: await text(response), serial };
}

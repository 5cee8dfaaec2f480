import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestTarget } from './request-target.ts';

/** Answers a request. What it asks for is in its target; `request.url` and `Host` are not read again. */
export type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  target: RequestTarget,
) => void;

/** Answers with an error as JSON. */
export function refuse(response: ServerResponse, status: number, error: string): void {
  const body = JSON.stringify({ error });
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestTarget } from './request/target.ts';

/** Answers a request. Reads the path and the host from `target`, never from `request.url` and `Host`. */
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

/** Receives an unexpected error (a bug) that occurred while a request was answered. */
export type OnBug = (error: unknown) => void;

/** Reports a bug and answers 500; if the answer has begun, closes the connection instead. */
export function fail(response: ServerResponse, error: unknown, onBug: OnBug): void {
  onBug(error);
  if (response.headersSent) response.destroy();
  else refuse(response, 500, 'evalwatch could not answer this request');
}

import { HTTPException } from 'hono/http-exception';
import { visibleJson } from '../domain/visible.ts';
import { StoreError } from '../monitor/errors.ts';

/** Receives an unexpected error (a bug) that occurred while a request was answered. */
export type OnBug = (error: unknown) => void;

/**
 * Answers a failed request with `{"error": text}`: an `HTTPException` as it says, a store that cannot be read with 503, and
 * everything else, a bug, with 500 after passing it to `onBug`.
 */
export function answerError(error: unknown, onBug: OnBug): Response {
  if (error instanceof HTTPException) {
    return error.res === undefined ? refusal(error.status, error.message) : error.getResponse();
  }
  if (error instanceof StoreError) return refusal(503, 'the store cannot be read at the moment');
  onBug(error);
  return refusal(500, 'evalwatch could not answer this request');
}

/** The error of a limit that is reached at the moment. */
export function tooMany(what: string): HTTPException {
  const res = refusal(503, `too many ${what} at the same time: try again`, { 'retry-after': '1' });
  return new HTTPException(503, { res });
}

function refusal(status: number, error: string, headers?: Record<string, string>): Response {
  return new Response(visibleJson(JSON.stringify({ error })), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

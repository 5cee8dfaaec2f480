import type { Context } from 'hono';

/** Answers 503: the queue of the endpoint is full, or its wait was too long. */
export function busy(context: Context): Response {
  return context.json({ error: 'too many requests at the same time: try again' }, 503, {
    'retry-after': '1',
  });
}

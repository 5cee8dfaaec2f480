import type { Context } from 'hono';

/** Answers that too much is asked for at the moment. */
export function busy(context: Context): Response {
  return context.json({ error: 'too much is asked for at the same time: try again' }, 503, {
    'retry-after': '1',
  });
}

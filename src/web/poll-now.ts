import type { Context } from 'hono';
import { z } from 'zod';
import type { FinishedPoll } from '../monitor/events.ts';
import { pollResult, pollResultFields } from '../rows/fields.ts';
import { project, readParameters } from './api/operations.ts';
import { RequestError } from './request/error.ts';

/**
 * Polls a project that this process owns, or with undefined all of them, beside their schedules
 * (docs/specification.md#poll-now). Resolves when the polls have ended, and at the latest after a few seconds.
 */
export type PollNow = (project: string | undefined) => Promise<PollNowResult>;

export type PollNowResult =
  | {
      readonly polled: readonly FinishedPoll[];
      /** Number of polls that have not ended yet; they continue. */
      readonly pending: number;
    }
  | { readonly refusal: 'unknown' | 'elsewhere' | 'running' | 'busy'; readonly error: string };

const STATUS_OF_REFUSAL = { unknown: 404, elsewhere: 409, running: 409, busy: 503 } as const;
const parameters = z.object({
  project: project.describe('Polls only this project.'),
});

/**
 * Answers `POST /-/poll` with JSON. A browser that sent a form returns to the page of the project, also if a poll of the
 * project already runs.
 */
export async function answerPollNow(context: Context, pollNow: PollNow): Promise<Response> {
  const id = projectOf(context.req.url);
  if (id instanceof RequestError) return context.json({ error: id.message }, id.status);
  const result = await pollNow(id.project);
  const isRefused = 'refusal' in result;
  const isForm = context.req.header('accept')?.includes('text/html') === true;
  if (isForm && (!isRefused || result.refusal === 'running')) {
    // Relative: a proxy may serve evalwatch below a path.
    const page = id.project === undefined ? '../' : `../projects/${encodeURIComponent(id.project)}`;
    return context.body(null, 303, { location: page });
  }
  if (isRefused) {
    const headers = result.refusal === 'busy' ? { 'retry-after': '1' } : undefined;
    return context.json({ error: result.error }, STATUS_OF_REFUSAL[result.refusal], headers);
  }
  const polled = result.polled.map((poll) => pollResultFields(pollResult(poll)));
  return context.json({ polled, pending: result.pending }, result.pending === 0 ? 200 : 202);
}

function projectOf(url: string): z.output<typeof parameters> | RequestError {
  try {
    return readParameters(url, parameters);
  } catch (error) {
    if (error instanceof RequestError) return error;
    throw error;
  }
}

import { get } from 'node:http';
import { setTimeout } from 'node:timers/promises';

export interface Visits {
  /** Number of responses by status code, or by error if there was none. */
  readonly answers: Readonly<Record<string, number>>;
  /** Longest time from connecting to the end of the response, ms. */
  readonly slowest: number;
}

const PAUSE_MS = 250;
const PATIENCE_MS = 60_000;

/** Requests a URL again and again, each time over a new connection from this local address. */
export async function visit(
  url: string,
  localAddress: string,
  until: AbortSignal,
): Promise<Visits> {
  const answers: Record<string, number> = {};
  let slowest = 0;
  while (!until.aborted) {
    const begun = performance.now();
    const answer = await ask(url, localAddress);
    slowest = Math.max(slowest, performance.now() - begun);
    answers[answer] = (answers[answer] ?? 0) + 1;
    await setTimeout(PAUSE_MS);
  }
  return { answers, slowest };
}

function ask(url: string, localAddress: string): Promise<string> {
  return new Promise((resolve) => {
    const asked = get(url, { agent: false, localAddress, timeout: PATIENCE_MS }, (response) => {
      response.resume();
      response.on('end', () => resolve(String(response.statusCode)));
      response.on('error', () => resolve('broken off'));
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
  });
}

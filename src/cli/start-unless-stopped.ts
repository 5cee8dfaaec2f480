import { exit } from '../files/thread-work.ts';

/** How long a start that was given up may take to release what it has opened. */
const RELEASE_MS = 2000;

/**
 * Resolves to what `start` does, or to undefined if a stop is asked for meanwhile: then its signal is aborted, and after 2 s
 * the process ends with 0 without waiting for it any longer.
 * @throws whatever `start` throws, except the reason of its signal
 */
export async function startUnlessStopped<Result>(
  start: (signal: AbortSignal) => Promise<Result>,
  stop: Promise<void>,
): Promise<Result | undefined> {
  const givenUp = new AbortController();
  const { signal } = givenUp;
  let isStarting = true;
  let timer: NodeJS.Timeout | undefined;
  const giveUp = (): void => {
    if (!isStarting) return;
    timer = setTimeout(exit, RELEASE_MS, 0);
    givenUp.abort(new Error('a stop was asked for during the start'));
  };
  void stop.then(giveUp);
  try {
    return await start(signal);
  } catch (error) {
    if (signal.aborted && error === signal.reason) return undefined;
    throw error;
  } finally {
    isStarting = false;
    clearTimeout(timer);
  }
}

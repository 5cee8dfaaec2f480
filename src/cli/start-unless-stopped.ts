/** Time that an aborted start has to release what it has opened. */
const RELEASE_MS = 2000;

/**
 * Resolves to the result of `start`, or to undefined if `stop` resolves first. Then the signal of `start` is aborted, and
 * the process exits with 0 if `start` has not ended within 2 s.
 * @throws what `start` throws, except the reason of its signal
 */
export async function startUnlessStopped<Result>(
  start: (signal: AbortSignal) => Promise<Result>,
  stop: Promise<void>,
): Promise<Result | undefined> {
  const aborted = new AbortController();
  const { signal } = aborted;
  let isStarting = true;
  let timer: NodeJS.Timeout | undefined;
  const abort = (): void => {
    if (!isStarting) return;
    timer = setTimeout(() => process.exit(0), RELEASE_MS);
    aborted.abort(new Error('stopped during the start'));
  };
  void stop.then(abort);
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

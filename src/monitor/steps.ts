import { setImmediate } from 'node:timers/promises';
import type { Steps } from '../domain/steps.ts';

/** Takes all steps, yielding to the event loop after each. Rejects with the signal's reason when it aborts. */
export async function takeSteps<Result>(
  steps: Steps<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    // Lets other work run between two steps.
    await setImmediate();
    signal?.throwIfAborted();
  }
}

import type { Steps } from '../domain/steps.ts';
import { createStepQueue } from './step-queue.ts';

/** Bytes of a listing that are parsed in one turn of the event loop, about two milliseconds: as long as one step. */
export const BYTES_PER_TURN = 256 * 1024;

/** All work in steps: each turn of the event loop takes one, however many listings are being read. */
export const steps = createStepQueue(BYTES_PER_TURN);

/**
 * Takes all steps, the first at once. Each further one waits until a turn of the event loop has room for it: in turns with
 * other work, and before the listings that are being parsed. Rejects with the signal's reason when it aborts.
 */
export async function takeSteps<Result>(
  work: Steps<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    // Takes a turn of the queue; the step that waits for it follows in the same turn of the event loop.
    await steps.run(0, BYTES_PER_TURN, () => {});
    signal?.throwIfAborted();
  }
}

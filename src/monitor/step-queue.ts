import type { Steps } from '../domain/steps.ts';

/** Takes the steps of work that shares the event loop. */
export interface StepQueue {
  /**
   * Takes all steps of `work`, each of which costs about `bytes` of the budget of a turn. Work of a lower `rank` goes first,
   * and work of one rank in the order of the calls. Rejects with the error that a step throws.
   */
  run(rank: number, bytes: number, work: Steps<void>): Promise<void>;
}

interface Job extends PromiseWithResolvers<void> {
  readonly rank: number;
  readonly bytes: number;
  readonly work: Steps<void>;
}

/** Creates a queue that takes steps of about `bytesPerTurn`, or one larger one, in each turn of the event loop. */
export function createStepQueue(bytesPerTurn: number): StepQueue {
  const jobs: Job[] = [];
  let left = bytesPerTurn;
  let nextTurn: NodeJS.Immediate | undefined;

  function takeSteps(): void {
    for (let [job] = jobs; job !== undefined && left > 0; [job] = jobs) {
      left -= job.bytes;
      takeStep(job);
    }
    if (left < bytesPerTurn) nextTurn ??= setImmediate(startTurn);
  }

  function takeStep(job: Job): void {
    try {
      if (job.work.next().done !== true) return;
      job.resolve();
    } catch (error) {
      job.reject(error);
    }
    jobs.splice(jobs.indexOf(job), 1);
  }

  function startTurn(): void {
    nextTurn = undefined;
    left = bytesPerTurn;
    takeSteps();
  }

  return {
    run: async (rank, bytes, work) => {
      const job = { rank, bytes, work, ...Promise.withResolvers<void>() };
      jobs.splice(jobs.findLastIndex((other) => other.rank <= rank) + 1, 0, job);
      takeSteps();
      await job.promise;
    },
  };
}

/** Takes the steps of work that shares the event loop. */
export interface StepQueue {
  /**
   * Takes a step, which costs about `bytes` of the budget of a turn. Steps of a lower `rank` go first, and those of one rank
   * in the order of the calls. Rejects with the error that the step throws.
   */
  run(rank: number, bytes: number, step: () => void): Promise<void>;
}

interface Job extends PromiseWithResolvers<void> {
  readonly rank: number;
  readonly bytes: number;
  readonly step: () => void;
}

/** Creates a queue that takes steps of about `bytesPerTurn`, or one larger one, in each turn of the event loop. */
export function createStepQueue(bytesPerTurn: number): StepQueue {
  const jobs: Job[] = [];
  let left = bytesPerTurn;
  let nextTurn: NodeJS.Immediate | undefined;

  function takeSteps(): void {
    for (let [job] = jobs; job !== undefined && left > 0; [job] = jobs) {
      left -= job.bytes;
      jobs.shift();
      takeStep(job);
    }
    if (left < bytesPerTurn) nextTurn ??= setImmediate(startTurn);
  }

  function takeStep({ step, resolve, reject }: Job): void {
    try {
      step();
      resolve();
    } catch (error) {
      reject(error);
    }
  }

  function startTurn(): void {
    nextTurn = undefined;
    left = bytesPerTurn;
    takeSteps();
  }

  return {
    run: async (rank, bytes, step) => {
      const job = { rank, bytes, step, ...Promise.withResolvers<void>() };
      jobs.splice(jobs.findLastIndex((other) => other.rank <= rank) + 1, 0, job);
      takeSteps();
      await job.promise;
    },
  };
}

/**
 * Numbers of the ownerships of this worker. A standby without the last claims gives their numbers again, while a commit under
 * such a number can still be on its way: a worker that has had a number must not own a project under it once more. Another
 * worker may, because commits are held to their owner, too.
 */
export interface Epochs {
  add(epoch: number): void;
  /** The greatest number so far; 0 before the first one. */
  newest(): number;
}

export function createEpochs(): Epochs {
  let newest = 0;
  return {
    add: (epoch) => {
      newest = Math.max(newest, epoch);
    },
    newest: () => newest,
  };
}

/** Does one thing after the other, in the order in which they come; what fails holds up nothing. */
export type Lane = <Result>(work: () => Promise<Result>) => Promise<Result>;

export function createLane(): Lane {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work);
    // Nothing of what came of it is kept.
    last = turn.then(
      () => {},
      () => {},
    );
    return turn;
  };
}

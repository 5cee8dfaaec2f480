/** Does one thing after the other, in the order in which they come; what fails holds up nothing. */
export type Lane = <Result>(work: () => Promise<Result>) => Promise<Result>;

export function createLane(): Lane {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work);
    last = turn.then(forget, forget);
    return turn;
  };
}

/** What came of it would be kept until the next one. */
function forget(): void {
  // Whoever asked for it is told.
}

/** Makes an error whose stack nobody reads, as one that is simulated: stacks take longer than most events. */
export function withoutStack<Failure extends Error>(make: () => Failure): Failure {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = before;
  }
}

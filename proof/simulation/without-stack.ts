/** Creates an error without a stack: nobody reads that of a simulated one, and stacks take longer than most events. */
export function withoutStack<Failure extends Error>(make: () => Failure): Failure {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = before;
  }
}

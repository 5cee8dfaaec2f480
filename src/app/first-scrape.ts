/** How long the first scrapes wait for the limits of the projects, ms. */
const MAX_WAIT_MS = 5000;

/**
 * Returns `render`, delayed until `learned` settles, but not longer than `maxWaitMs` from now. A firing alert would resolve if
 * a scrape after a restart lacked the limit (docs/specification.md#scrapes).
 */
export function afterLearning(
  render: () => AsyncIterable<Uint8Array>,
  learned: Promise<unknown>,
  maxWaitMs: number = MAX_WAIT_MS,
): () => AsyncIterable<Uint8Array> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, maxWaitMs).unref();
  const isOver = Promise.race([learned, late]);
  return async function* () {
    await isOver;
    yield* render();
  };
}

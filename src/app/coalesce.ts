/** Returns a function that calls `action` once in the next turn of the event loop, however often it is called in this one. */
export function coalesce(action: () => void): () => void {
  let isPlanned = false;
  return () => {
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(() => {
      isPlanned = false;
      action();
    });
  };
}

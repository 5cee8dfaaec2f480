/** By signal. A signal compares each new listener with all that it has, which takes long with thousands. */
const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back once when the signal, which has not aborted yet, aborts. Returns a function that prevents it. Takes constant time.
 * For signals that live as long as the process: its listener stays.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = callbacksOf.get(signal) ?? listen(signal);
  const called = () => callback();
  callbacks.add(called);
  return () => void callbacks.delete(called);
}

function listen(signal: AbortSignal): Set<() => void> {
  const callbacks = new Set<() => void>();
  callbacksOf.set(signal, callbacks);
  signal.addEventListener('abort', () => {
    for (const callback of callbacks) callback();
    callbacks.clear();
  });
  return callbacks;
}

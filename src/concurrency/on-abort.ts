/** Callbacks by signal. A signal compares each new listener with all that it has, which takes long with thousands. */
const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls back once when the signal aborts. Returns a function that prevents it. Takes constant time. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = callbacksOf.get(signal) ?? listen(signal);
  const called = () => callback();
  callbacks.add(called);
  return () => callbacks.delete(called);
}

function listen(signal: AbortSignal): Set<() => void> {
  const callbacks = new Set<() => void>();
  callbacksOf.set(signal, callbacks);
  const callAll = () => {
    for (const callback of callbacks) callback();
    callbacks.clear();
  };
  signal.addEventListener('abort', callAll, { once: true });
  return callbacks;
}

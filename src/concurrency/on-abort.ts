interface Listener {
  readonly callbacks: Set<() => void>;
  readonly callAll: () => void;
}

/** By signal. A signal compares each new listener with all that it has, which takes long with thousands. */
const listeners = new WeakMap<AbortSignal, Listener>();

/**
 * Calls back once when the signal, which has not aborted yet, aborts. Returns a function that prevents it. Takes constant time.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const { callbacks, callAll } = listeners.get(signal) ?? listen(signal);
  const called = () => callback();
  callbacks.add(called);
  return () => {
    if (!callbacks.delete(called) || callbacks.size > 0) return;
    // Node keeps a signal of AbortSignal.any in memory as long as it has a listener.
    signal.removeEventListener('abort', callAll);
    listeners.delete(signal);
  };
}

function listen(signal: AbortSignal): Listener {
  const callbacks = new Set<() => void>();
  const callAll = () => {
    for (const callback of callbacks) callback();
    callbacks.clear();
  };
  const listener = { callbacks, callAll };
  listeners.set(signal, listener);
  signal.addEventListener('abort', callAll, { once: true });
  return listener;
}

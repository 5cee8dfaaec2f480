/** A waiter in the queue of its class, which can change while it waits. */
export interface Waiting<Class extends string> {
  readonly classOf: () => Class;
}

/** First-in, first-out queues, one for each class. Each operation takes constant time. */
export interface ClassQueues<Class extends string, Waiter extends Waiting<Class>> {
  readonly size: () => number;
  join(waiter: Waiter): void;
  remove(waiter: Waiter): void;
  /**
   * Returns the first waiter of this queue. A waiter whose class has changed moves to the end of its new queue when it
   * reaches the front of the old one.
   */
  first(wanted: Class): Waiter | undefined;
}

interface Link<Waiter> {
  readonly waiter: Waiter;
  next: Link<Waiter> | undefined;
}

interface Queue<Waiter> {
  first: Link<Waiter> | undefined;
  last: Link<Waiter> | undefined;
}

export function createClassQueues<
  Class extends string,
  Waiter extends Waiting<Class>,
>(): ClassQueues<Class, Waiter> {
  const queues = new Map<Class, Queue<Waiter>>();
  /** Waiters that still wait. Links of others are dropped when they reach the front of their queue. */
  const present = new Set<Waiter>();

  function append(waiter: Waiter): void {
    const link = { waiter, next: undefined };
    const queue = queues.get(waiter.classOf());
    if (queue?.last === undefined) {
      queues.set(waiter.classOf(), { first: link, last: link });
    } else {
      queue.last.next = link;
      queue.last = link;
    }
  }

  return {
    size: () => present.size,
    join: (waiter) => {
      present.add(waiter);
      append(waiter);
    },
    remove: (waiter) => {
      present.delete(waiter);
    },
    first: (wanted) => {
      const queue = queues.get(wanted);
      if (queue === undefined) return undefined;
      for (let link = queue.first; link !== undefined; link = queue.first) {
        const { waiter, next } = link;
        const isPresent = present.has(waiter);
        if (isPresent && waiter.classOf() === wanted) return waiter;
        queue.first = next;
        if (next === undefined) queue.last = undefined;
        if (isPresent) append(waiter);
      }
      return undefined;
    },
  };
}

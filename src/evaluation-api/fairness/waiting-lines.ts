/** A waiter in the line of its class, which can change meanwhile. */
export interface Waiting<Class extends string> {
  readonly classOf: () => Class;
}

/** First-in, first-out lines, one for each class. Each operation takes constant time. */
export interface WaitingLines<Class extends string, Waiter extends Waiting<Class>> {
  readonly size: () => number;
  join(waiter: Waiter): void;
  leave(waiter: Waiter): void;
  /**
   * Returns the first waiter of this line. A waiter whose class has changed moves to the end of its new line when it
   * reaches the front of the old one.
   */
  first(wanted: Class): Waiter | undefined;
}

interface Link<Waiter> {
  readonly waiter: Waiter;
  next: Link<Waiter> | undefined;
}

interface Line<Waiter> {
  first: Link<Waiter> | undefined;
  last: Link<Waiter> | undefined;
}

export function createWaitingLines<
  Class extends string,
  Waiter extends Waiting<Class>,
>(): WaitingLines<Class, Waiter> {
  const lines = new Map<Class, Line<Waiter>>();
  /** Waiters that have not left. Others are removed when they reach the front of their line. */
  const present = new Set<Waiter>();

  function append(waiter: Waiter): void {
    const link = { waiter, next: undefined };
    const line = lines.get(waiter.classOf());
    if (line?.last === undefined) {
      lines.set(waiter.classOf(), { first: link, last: link });
    } else {
      line.last.next = link;
      line.last = link;
    }
  }

  return {
    size: () => present.size,
    join: (waiter) => {
      present.add(waiter);
      append(waiter);
    },
    leave: (waiter) => {
      present.delete(waiter);
    },
    first: (wanted) => {
      const line = lines.get(wanted);
      if (line === undefined) return undefined;
      for (let link = line.first; link !== undefined; link = line.first) {
        const { waiter, next } = link;
        const isPresent = present.has(waiter);
        if (isPresent && waiter.classOf() === wanted) return waiter;
        line.first = next;
        if (next === undefined) line.last = undefined;
        if (isPresent) append(waiter);
      }
      return undefined;
    },
  };
}

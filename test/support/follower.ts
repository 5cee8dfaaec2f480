import { setTimeout } from 'node:timers/promises';
import { readEvents, type ReceivedEvent } from './event-stream.ts';

/** A client that follows the events of successive daemons, from the first event on. */
export interface Follower extends AsyncDisposable {
  /** Transitions, failures and resets, in the order in which they came. */
  readonly received: readonly ReceivedEvent[];
  /** Number of connections made. */
  readonly connections: number;
  /** Drops the connection after the next event, while more may follow. */
  breakOff(): void;
}

/** `url` returns the address of the daemon, undefined while there is none. */
export function follow(url: () => string | undefined, query = ''): Follower {
  const received: ReceivedEvent[] = [];
  let connections = 0;
  let isToBreak = false;
  const stopped = new AbortController();
  let lastEventId = '';
  let connection = new AbortController();

  async function connect(to: string): Promise<void> {
    connection = new AbortController();
    const answer = await fetch(`${to}/api/v1/events?after=t0.f0${query}`, {
      headers: lastEventId === '' ? {} : { 'last-event-id': lastEventId },
      signal: connection.signal,
    });
    connections += 1;
    for await (const event of readEvents(answer.body)) {
      if (event.type !== 'poll') {
        received.push(event);
        ({ lastEventId } = event);
      }
      if (!isToBreak) continue;
      isToBreak = false;
      return connection.abort();
    }
  }

  async function run(): Promise<void> {
    while (!stopped.signal.aborted) {
      const to = url();
      if (to !== undefined) await connect(to).catch(() => {});
      await setTimeout(10);
    }
  }

  const running = run();
  return {
    received,
    get connections() {
      return connections;
    },
    breakOff: () => {
      isToBreak = true;
    },
    [Symbol.asyncDispose]: async () => {
      stopped.abort();
      connection.abort();
      await running;
    },
  };
}

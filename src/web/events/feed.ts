import { setImmediate } from 'node:timers/promises';
import type { Observer } from '../../monitor/events.ts';
import type { EventPosition, StoreReader } from '../../monitor/ports.ts';
import { isoTime, pollFields } from '../../monitor/row-fields.ts';
import { eventText, type StreamedEvent, writeId } from './event.ts';
import { type EventPage, toPage } from './page.ts';

/** Of transitions and of failures that are read at once. */
const PAGE = 200;
/** Finished polls that are remembered for clients that are a little behind. */
const POLLS = 500;
/** News within this time are one for the clients, ms: a busy monitor does not wake each of them for each commit. */
const GATHER_MS = 50;

/** What all streams have in common: who is at the same place shares what is read and written for it. */
export interface EventFeed {
  /** Has to see the monitor's events: commits and finished polls are news. */
  readonly observe: Observer;
  /** Where the recorded events end now. @throws {StoreError} */
  end(): Promise<EventPosition>;
  /** @throws {StoreError} */
  read(after: EventPosition): Promise<EventPage>;
  /** Finished polls after so many, of those that are still remembered, and how many there were in all. */
  polls(after: number): { readonly events: readonly StreamedEvent[]; readonly count: number };
  /** Changes with all news. */
  version(): number;
  /** Waits for news since `version`: false when `ms` passed, or the signal came, without any. */
  news(version: number, ms: number, signal: AbortSignal): Promise<boolean>;
}

/** `lookEveryMs` is how often a store is read whose commits are not all told here; without it they are. */
export function createEventFeed(
  store: Pick<StoreReader, 'events'>,
  { lookEveryMs }: { readonly lookEveryMs?: number } = {},
): EventFeed {
  let version = 0;
  let latest: { readonly id: string; readonly page: Promise<EventPage> } | undefined;
  let polls: readonly StreamedEvent[] = [];
  let pollCount = 0;
  const waiting = new Set<() => void>();
  let gathering: NodeJS.Timeout | undefined;
  let looking: NodeJS.Timeout | undefined;

  function announce(): void {
    version += 1;
    latest = undefined;
    if (waiting.size > 0) gather();
  }

  function gather(): void {
    gathering ??= setTimeout(wakeAll, GATHER_MS);
  }

  function wakeAll(): void {
    gathering = undefined;
    for (const wake of waiting) wake();
  }

  async function load(after: EventPosition): Promise<EventPage> {
    // Whoever reads through years of events lets others have their turn.
    await setImmediate();
    return toPage(after, await store.events(after, PAGE), PAGE);
  }

  return {
    observe: (event) => {
      if (event.type === 'store.committed') announce();
      if (event.type !== 'poll.finished') return;
      const { project, changed, health } = event;
      const fields = { ...pollFields(event), time: isoTime(health.lastPollAt ?? 0), changed };
      const poll: StreamedEvent = { type: 'poll', project, text: eventText('poll', fields) };
      polls = [...polls.slice(1 - POLLS), poll];
      pollCount += 1;
      announce();
    },
    end: async () => (await store.events({ transition: 0, settlement: 0 }, 0)).end,
    read: (after) => {
      const id = writeId(after);
      if (latest?.id === id) return latest.page;
      const page = load(after);
      latest = { id, page };
      page.catch(() => {
        if (latest?.page === page) latest = undefined;
      });
      return page;
    },
    polls: (after) => ({
      events: after === pollCount ? [] : polls.slice(after - pollCount),
      count: pollCount,
    }),
    version: () => version,
    news: async (seen, ms, signal) => {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const wake = () => resolve(true);
      const giveUp = () => resolve(false);
      const timer = setTimeout(giveUp, ms);
      waiting.add(wake);
      if (lookEveryMs !== undefined) looking ??= setInterval(announce, lookEveryMs);
      if (seen !== version) gather();
      signal.addEventListener('abort', giveUp);
      if (signal.aborted) giveUp();
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        waiting.delete(wake);
        if (waiting.size === 0) {
          clearInterval(looking);
          looking = undefined;
        }
        signal.removeEventListener('abort', giveUp);
      }
    },
  };
}

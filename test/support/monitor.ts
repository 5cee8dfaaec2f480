import { systemClock } from '../../src/app/clock.ts';
import type { Listing, ObservedRecord } from '../../src/domain/record.ts';
import { statusOf, type Kind } from '../../src/domain/status.ts';
import { ApiError, type ApiErrorDetails, type ApiFailureReason } from '../../src/monitor/errors.ts';
import type { MonitorEvent } from '../../src/monitor/events.ts';
import type { Clock } from '../../src/monitor/ports/clock.ts';
import type { ListOptions, ListingAnswer } from '../../src/monitor/ports/service.ts';

/** Returns a clock that stands still until it is moved. Its timers are real. */
export function fakeClock(
  start = 1_700_000_000_000,
): Clock & { advance(ms: number): void; set(now: number): void } {
  let now = start;
  let monotonic = 0;
  return {
    ...systemClock,
    now: () => now,
    monotonic: () => monotonic,

    advance: (ms) => {
      now += ms;
      monotonic += ms;
    },
    set: (time) => {
      now = time;
    },
  };
}

export function neverStopping() {
  return { waits: new AbortController().signal, requests: new AbortController().signal };
}

/** Collects events; `of` returns those of one type. */
export function eventLog() {
  const events: MonitorEvent[] = [];
  return {
    events,
    emit: (event: MonitorEvent) => {
      events.push(event);
    },
    of: <Type extends MonitorEvent['type']>(type: Type) =>
      events.filter((event): event is Extract<MonitorEvent, { type: Type }> => event.type === type),
    clear: () => {
      events.length = 0;
    },
  };
}

/** Returns a listing with these raw statuses by id. */
export function listingOf(
  statuses: Readonly<Record<string, string>>,
  more: Partial<Listing> = {},
): Listing {
  const records = new Map(
    Object.entries(statuses).map(([id, raw]): [string, ObservedRecord] => {
      const status = statusOf(raw);
      const statusRaw = status === 'UNKNOWN' ? raw : undefined;
      return [id, { id, status, statusRaw, name: `name of ${id}`, timestamp: undefined }];
    }),
  );
  return { records, idsWithoutStatus: new Set(), complete: true, anomalies: [], ...more };
}

/** Returns an Evaluation Service whose next answers a test sets. The digest of a listing is its number among all, from 1. */
export function scriptedService() {
  let next: ListingAnswer | ApiError | 'hang' | undefined;
  let datasets: ListingAnswer | ApiError | undefined;
  let served = 0;
  let during: (() => void) | undefined;
  let before: (() => void) | undefined;
  const asked: { project: string; kind: Kind; options: ListOptions }[] = [];
  let datasetsAfter: Promise<void> | undefined;
  const freed: string[] = [];
  const whole = (listing: Listing, recordBytes = 0) => {
    served += 1;
    const digest = String(served);
    const table = { digest, free: () => void freed.push(digest) };
    const { size } = listing.records;
    return { unchanged: false as const, listing, size, recordBytes, etag: 'etag', table };
  };
  /** Bytes of records of the polls that currently wait for the store. */
  const storing: number[] = [];
  return {
    asked,
    waitingForStore: storing,
    /** Numbers of the answers whose tables were freed. */
    freed,
    storing: (bytes: number) => {
      storing.push(bytes);
      return { [Symbol.dispose]: () => void storing.splice(storing.indexOf(bytes), 1) };
    },
    shows: (listing: Listing, recordBytes?: number) => {
      next = whole(listing, recordBytes);
    },
    /** Answers with a difference: these records, these vanished ids, and the number of records there are now. */
    differs: (listing: Listing, vanished: readonly string[], size: number) => {
      next = { ...whole(listing), vanished, size };
    },
    /** Answers with datasets, not before `after` resolves. */
    showsDatasets: (listing: Listing, recordBytes?: number, after?: Promise<void>) => {
      datasets = whole(listing, recordBytes);
      datasetsAfter = after;
    },
    repeats: () => {
      next = { unchanged: true, full: false };
    },
    fails: (reason: ApiFailureReason, details: ApiErrorDetails = {}) => {
      next = new ApiError(reason, `the service answered ${reason}`, details);
    },
    failsDatasets: (reason: ApiFailureReason) => {
      datasets = new ApiError(reason, `the service answered ${reason}`);
    },
    hangs: () => {
      next = 'hang';
    },
    /** Calls `act` once, while the next request waits for its turn. */
    whileItWaits: (act: () => void) => {
      before = act;
    },
    /** Calls `act` once, while the next listing is on its way. */
    meanwhile: (act: () => void) => {
      during = act;
    },
    list: async (project: string, kind: Kind, options: ListOptions): Promise<ListingAnswer> => {
      asked.push({ project, kind, options });
      const answer = kind === 'prompt' ? next : datasets;
      if (answer === 'hang') {
        await new Promise((_resolve, reject) => {
          options.signal.waits.addEventListener('abort', () => reject(new Error('stopped')));
        });
      }
      before?.();
      before = undefined;
      options.onRequest();
      if (kind === 'dataset') await datasetsAfter;
      during?.();
      during = undefined;
      if (answer === undefined || answer === 'hang') throw new Error(`no answer set for ${kind}`);
      if (answer instanceof ApiError) throw answer;
      return answer;
    },
  };
}

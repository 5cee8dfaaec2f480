import type { Receiver } from '../domain/receiver.ts';
import { StoreError } from '../monitor/errors.ts';
import type { MonitorEvent, Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Shutdown } from '../monitor/ports/service.ts';
import type { Delivery } from './answer.ts';
import type { Message } from './message.ts';
import type { Outbox } from './outbox.ts';

/** Pause after the first failed attempt; each further one doubles it. */
const MIN_PAUSE_MS = 5000;
const MAX_PAUSE_MS = 5 * 60_000;
/** Minimum pause that the receiver can ask for. */
const MIN_RETRY_AFTER_MS = 1000;
/** Pause after an error of the store. */
const STORE_PAUSE_MS = 5000;
/** Minimum time until the next look without news. */
const MIN_LOOK_MS = 1000;
/** Age at which a message is given up. */
const MAX_AGE_MS = 24 * 60 * 60_000;

type OutboxOf = Pick<Outbox, 'configure' | 'observe' | 'next' | 'done' | 'oldestDueAt'>;

export interface DelivererOptions {
  readonly outboxOf: (receiver: Receiver) => OutboxOf;
  readonly send: (
    receiver: Receiver,
    message: Message,
    options: { readonly signal: AbortSignal; readonly clock: Clock },
  ) => Promise<Delivery>;
  readonly clock: Clock;
  readonly emit: Observer;
  readonly shutdown: Shutdown;
  /** Receives unexpected errors: bugs. */
  readonly onError: (error: unknown) => void;
}

interface Failing {
  /** Since when every attempt has failed, epoch ms, and why the last one did. */
  readonly since: number;
  readonly reason: string;
}

/** A receiver as the status page and scrapes show it. */
export interface ReceiverState {
  readonly name: string;
  /** Undefined if no attempt failed, or it works again. */
  readonly failing: Failing | undefined;
  /** Since when something waits for it, epoch ms; undefined if nothing does. */
  readonly oldestDueAt: number | undefined;
}

/** What a receiver waits for. */
interface Rest {
  readonly end: () => void;
  /** Whether news ends it. A pause after an error is ended only by another configuration. */
  readonly isIdle: boolean;
}

interface Lane {
  readonly outbox: OutboxOf;
  /** As last configured; undefined if the receiver was removed, which ends its loop. */
  receiver?: Receiver | undefined;
  work?: Promise<void>;
  rest?: Rest | undefined;
  /** Whether there was news since the last look. */
  hasNews: boolean;
  failing?: (Failing & { readonly count: number }) | undefined;
  /** The message that was answered or given up, until the store has forgotten it. */
  ended?: Message | undefined;
}

/**
 * Sends each receiver its messages, one at a time and in order, until each is answered or given up
 * (docs/specification.md#delivery). A receiver delays no other.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  /** By the name of the receiver. A lane of a removed receiver stays until its loop has ended. */
  readonly #lanes = new Map<string, Lane>();

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  /** Sends to these receivers from now on, and at once to those that failed. An attempt in flight goes on. */
  configure(receivers: readonly Receiver[]): void {
    for (const lane of this.#lanes.values()) lane.receiver = undefined;
    for (const receiver of receivers) {
      const lane: Lane = this.#lanes.get(receiver.name) ?? {
        outbox: this.#options.outboxOf(receiver),
        hasNews: true,
      };
      this.#lanes.set(receiver.name, lane);
      lane.outbox.configure(receiver);
      lane.receiver = receiver;
    }
    for (const [name, lane] of this.#lanes) {
      lane.hasNews = true;
      lane.rest?.end();
      lane.work ??= this.#run(name, lane).catch(this.#options.onError);
    }
  }

  /** Looks for messages after news, except for receivers that fail: those wait for their next attempt. */
  observe(event: MonitorEvent): void {
    for (const lane of this.#lanes.values()) {
      if (!lane.outbox.observe(event)) continue;
      lane.hasNews = true;
      if (lane.rest?.isIdle) lane.rest.end();
    }
  }

  /** The configured receivers, in the order in which they were first configured. */
  states(): readonly ReceiverState[] {
    const configured = [...this.#lanes].filter(([, { receiver }]) => receiver !== undefined);
    return configured.map(([name, { failing, outbox }]) => {
      return { name, failing, oldestDueAt: outbox.oldestDueAt() };
    });
  }

  /** To be called once the shutdown has begun; resolves when no attempt is in flight. */
  async stop(): Promise<void> {
    for (const lane of this.#lanes.values()) lane.rest?.end();
    await Promise.all(this.#lanes.values().map(async ({ work }) => await work));
  }

  async #run(name: string, lane: Lane): Promise<void> {
    const { emit, shutdown } = this.#options;
    let isStoreFailing = false;
    while (lane.receiver !== undefined && !shutdown.waits.aborted) {
      try {
        await this.#step(lane, lane.receiver);
        isStoreFailing = false;
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        if (!isStoreFailing) emit({ type: 'notification.store_failed', receiver: name, error });
        isStoreFailing = true;
        await this.#rest(lane, STORE_PAUSE_MS, { isIdle: false });
      }
    }
    if (lane.receiver === undefined) this.#lanes.delete(name);
  }

  /** Sends the next message and waits as long as the answer demands, or waits until there is one. @throws {StoreError} */
  async #step(lane: Lane, receiver: Receiver): Promise<void> {
    const { clock, emit } = this.#options;
    await forget(lane);
    lane.hasNews = false;
    const next = await lane.outbox.next();
    if (!('message' in next)) {
      const waitMs = Math.max(next.waitMs, MIN_LOOK_MS);
      if (!lane.hasNews) await this.#rest(lane, waitMs, { isIdle: true });
      return;
    }
    // A reload meanwhile may have removed it, or changed its address.
    if (lane.receiver !== receiver) return;
    const { message, createdAt, project } = next;
    if (clock.now() - createdAt >= MAX_AGE_MS) {
      emit({
        type: 'notification.given_up',
        receiver: receiver.name,
        project,
        message: message.type,
        count: 'count' in message.data ? message.data.count : 1,
        reason: lane.failing?.reason,
      });
    } else {
      const pauseMs = await this.#attempt(lane, receiver, message);
      if (pauseMs !== undefined) {
        // A reload meanwhile may have corrected it.
        if (lane.receiver === receiver) await this.#rest(lane, pauseMs, { isIdle: false });
        return;
      }
    }
    lane.ended = message;
    await forget(lane);
  }

  /** Sends a message once. Returns how long to wait before the next attempt, ms; undefined if the receiver has it. */
  async #attempt(lane: Lane, receiver: Receiver, message: Message): Promise<number | undefined> {
    const { send, clock, emit, shutdown } = this.#options;
    const { name } = receiver;
    const { failing } = lane;
    const delivery = await send(receiver, message, { signal: shutdown.requests, clock });
    if (delivery.ok) {
      const { doubt } = delivery;
      const { id, type } = message;
      emit({ type: 'notification.sent', receiver: name, id, message: type, doubt });
      if (failing !== undefined) {
        const { count: failuresBefore } = failing;
        emit({ type: 'notification.recovered', receiver: name, failuresBefore });
      }
      lane.failing = undefined;
      return undefined;
    }
    // The end of the grace period is no failure of the receiver.
    if (shutdown.requests.aborted) return 0;
    const { reason, statusCode, retryAfterMs } = delivery;
    if (failing === undefined) {
      emit({ type: 'notification.failed', receiver: name, reason, statusCode });
    }
    const { since, count } = failing ?? { since: clock.now(), count: 0 };
    lane.failing = { since, reason, count: count + 1 };
    return retryAfterMs === undefined
      ? Math.min(MIN_PAUSE_MS * 2 ** count, MAX_PAUSE_MS)
      : Math.max(retryAfterMs, MIN_RETRY_AFTER_MS);
  }

  /** Resolves after `ms`; earlier at a reload or shutdown, and if it is idle at news. */
  async #rest(lane: Lane, ms: number, { isIdle }: { isIdle: boolean }) {
    const { clock, shutdown } = this.#options;
    if (shutdown.waits.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = clock.timeout(ms, resolve);
    lane.rest = { end: resolve, isIdle };
    await promise;
    timer.cancel();
    lane.rest = undefined;
  }
}

/** Has the store forget the message that has ended, so that it is not sent again. @throws {StoreError} */
async function forget(lane: Lane): Promise<void> {
  if (lane.ended === undefined) return;
  await lane.outbox.done(lane.ended);
  lane.ended = undefined;
}

import type { ExpectationsOf } from '../domain/limits.ts';
import type { MonitorEvent } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { PollHealth } from '../monitor/ports/store.ts';
import type { ConfiguredProject } from '../monitor/ports/watched-project.ts';
import type { Message } from './message.ts';
import type { NotifyStore, Subscriber, Subscription } from './ports.ts';

export interface OutboxOptions<Receiver extends Subscriber, Project extends ConfiguredProject> {
  readonly store: NotifyStore;
  readonly clock: Pick<Clock, 'now'>;
  /** Returns the configured projects by id. */
  readonly projects: () => ReadonlyMap<string, Project>;
  /** Whether this process polls the project, and so tells of it. */
  readonly mayTell: (project: string) => boolean;
  /** Whether the receiver is told of the project. */
  readonly isFor: (receiver: Receiver, project: Project) => boolean;
  readonly health: (project: string) => PollHealth | undefined;
  readonly expectationsOf: ExpectationsOf;
  /** Returns the longest interval of a project's schedule, ms. */
  readonly maxIntervalMs: (project: string) => number;
  /** `web.external_url` without a slash at its end, and `service.prompt_url`. */
  readonly addresses: () => {
    readonly externalUrl: string | undefined;
    readonly promptUrl: string | undefined;
  };
  /** Called for moves that are too old to be told, because the receiver did not answer for a day. */
  readonly onGivenUp: (subscription: Subscription, project: string, count: number) => void;
}

/** A stored message to send. */
export interface Sendable {
  readonly message: Message;
  readonly createdAt: number;
  /** The owner of this project sends it. */
  readonly project: string;
}

/**
 * The messages that are due. One call at a time for each receiver.
 */
export class Outbox<Receiver extends Subscriber, Project extends ConfiguredProject> {
  readonly #options: OutboxOptions<Receiver, Project>;

  constructor(options: OutboxOptions<Receiver, Project>) {
    this.#options = options;
  }

  /** Notes what can have become due. */
  readonly observe = (_event: MonitorEvent): void => {};

  /**
   * Returns the message to send now: the oldest stored one that the receiver has not answered, or else one that is composed and
   * stored now. Without one, returns when to look again, epoch ms.
   * @throws {StoreError}
   */
  async next(_receiver: Receiver): Promise<Sendable | { readonly lookAt: number }> {
    await Promise.resolve();
    return { lookAt: this.#options.clock.now() + 15_000 };
  }

  /** Deletes a message that was answered, or is given up. @throws {StoreError} */
  async done(receiver: string, messageId: string): Promise<void> {
    await this.#options.store.forget(receiver, messageId);
  }

  /** Returns since when something waits for this receiver, epoch ms; undefined if nothing does. */
  oldestDueAt(_receiver: string): number | undefined {
    return undefined;
  }
}

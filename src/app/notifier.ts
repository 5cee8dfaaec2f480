import type { Clock } from '../monitor/ports/clock.ts';
import { Deliverer, type DelivererOptions, type ReceiverState } from '../notify/deliver.ts';
import { Outbox, type OutboxOptions } from '../notify/outbox.ts';
import { send } from '../notify/send.ts';
import type { Engine } from './engine.ts';
import { endProcess, version } from './process.ts';

/** Sends the receivers of the configuration what happens in the projects that this process polls. */
export class Notifier {
  readonly #engine: Engine;
  readonly #deliverer: Deliverer;
  #isStarted = false;

  /** @param sendOnce makes one attempt, by default over the network */
  constructor(
    engine: Engine,
    clock: Clock,
    sendOnce: DelivererOptions['send'] = (receiver, message, options) =>
      send(receiver, message, { ...options, network: engine.config.service, version }),
  ) {
    const { emit, shutdown } = engine;
    this.#engine = engine;
    const options: OutboxOptions = {
      store: engine.opened.notifications,
      clock,
      projects: () => engine.projects,
      mayTell: (id) => engine.mayPoll(id),
      health: (id) => engine.health(id),
      expectationsOf: engine.expectations.of,
      isQuiet: (id) => engine.isQuiet(id),
      untoldUntil: (id) => engine.untoldUntil(id),
      maxIntervalMs: (id) => engine.maxIntervalMs(id),
      addresses: () => {
        const { web, promptUrl } = engine.config;
        return { externalUrl: web.externalUrl, promptUrl };
      },
      onGivenUp: ({ receiver, kind }, project, count) => {
        const message = kind === 'finished' ? 'experiments.finished' : `prompts.${kind}`;
        const reason = undefined;
        emit({ type: 'notification.given_up', receiver, project, message, count, reason });
      },
    };
    this.#deliverer = new Deliverer({
      outboxOf: (receiver) => new Outbox(receiver, options),
      send: sendOnce,
      clock,
      emit,
      shutdown,
      onError: endProcess,
    });
    engine.observe((event) => {
      this.#deliverer.observe(event);
      if (event.type === 'config.applied' && this.#isStarted) this.#configure();
    });
  }

  /** Begins to send. */
  start(): void {
    this.#isStarted = true;
    this.#configure();
  }

  /** To be called once the shutdown has begun; resolves when no attempt is in flight. */
  async stop(): Promise<void> {
    await this.#deliverer.stop();
  }

  states(): readonly ReceiverState[] {
    return this.#deliverer.states();
  }

  #configure(): void {
    this.#deliverer.configure(this.#engine.config.notify);
  }
}

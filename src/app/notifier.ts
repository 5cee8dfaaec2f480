import type { Receiver } from '../domain/receiver.ts';
import type { MonitorEvent } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import { Deliverer, type DelivererOptions, type ReceiverState } from '../notify/deliver.ts';
import { Outbox } from '../notify/outbox.ts';
import { send } from '../notify/send.ts';
import { maxIntervalOf } from '../schedule/cron.ts';
import type { Engine } from './engine.ts';
import { endProcess, version } from './process.ts';

/** Events after which something can be due at once. What begins without one is found by the looks of the outbox. */
const NEWS: ReadonlySet<MonitorEvent['type']> = new Set<MonitorEvent['type']>([
  'record.transition',
  'record.gone',
  'prompt.failed',
  'worker.claimed',
]);

/** Sends the receivers of the configuration what happens in the projects that this process polls. */
export class Notifier {
  readonly #engine: Engine;
  readonly #outbox: Outbox;
  readonly #deliverer: Deliverer<Receiver>;
  #isStarted = false;

  /** @param sendOnce makes one attempt, by default over the network */
  constructor(
    engine: Engine,
    clock: Clock,
    sendOnce: DelivererOptions<Receiver>['send'] = (receiver, message, options) =>
      send(receiver, message, { ...options, network: engine.config.service, version }),
  ) {
    const { emit, shutdown } = engine;
    this.#engine = engine;
    this.#outbox = new Outbox({
      store: engine.opened.notifications,
      clock,
      projects: () => engine.projects,
      mayTell: (id) => engine.mayPoll(id),
      health: (id) => engine.health(id),
      expectationsOf: engine.expectations.of,
      maxIntervalMs: (id) => maxIntervalOf(engine.projects.get(id), clock.now()),
      addresses: () => {
        const { web, promptUrl } = engine.config;
        return { externalUrl: web.externalUrl, promptUrl };
      },
      onGivenUp: ({ receiver, kind }, project, count) => {
        const message = `prompts.${kind}`;
        const reason = undefined;
        emit({ type: 'notification.given_up', receiver, project, message, count, reason });
      },
    });
    const outbox = this.#outbox;
    this.#deliverer = new Deliverer({
      outbox,
      send: sendOnce,
      clock,
      emit,
      shutdown,
      onError: endProcess,
    });
    engine.observe((event) => {
      outbox.observe(event);
      if (NEWS.has(event.type)) this.#deliverer.wake();
      else if (event.type === 'config.applied' && this.#isStarted) this.#configure();
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
    const receivers = this.#engine.config.notify;
    const names = new Set(receivers.map(({ name }) => name));
    for (const { name } of this.states()) if (!names.has(name)) this.#outbox.drop(name);
    this.#deliverer.configure(receivers);
  }
}

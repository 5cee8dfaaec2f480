import type { Receiver } from '../../../src/domain/receiver.ts';
import type { MonitorEvent } from '../../../src/monitor/events.ts';
import type { FinishRow, TransitionRow } from '../../../src/monitor/ports/store.ts';
import type { Delivery } from '../../../src/notify/answer.ts';
import type { Message } from '../../../src/notify/message.ts';
import type { Life, Simulation } from '../parts.ts';
import { MINUTE, RECEIVERS, SECOND } from '../scenario.ts';

/** Time limit of an attempt, ms. */
const TIMEOUT_MS = 10 * SECOND;
/** Mean time between two phases in which a receiver behaves otherwise, ms. */
const MEAN_PHASE_MS = 15 * MINUTE;
/** Probability that a process dies before or after a message arrives. */
const DEATH_AT_MESSAGE = 0.02;

/** How a receiver behaves, in the share of its phases. */
const PHASES = ['works', 'works', 'flickers', 'refuses', 'hangs'] as const;
type Phase = (typeof PHASES)[number];

const STATUSES = { 'prompts.failed': 'FAILED', 'prompts.completed': 'COMPLETED' } as const;
const TYPES = ['prompts.failed', 'prompts.completed', 'experiments.finished'] as const;

/** A message that arrived for the first time. */
interface Arrival {
  readonly receiver: string;
  readonly message: Message;
}

/** The receivers of messages, and what they must be told: each move and each finish once, in order, each message with one content. */
export function createReceivers({ course, endings }: Pick<Simulation, 'course' | 'endings'>) {
  const { kernel, isCalm, fault } = course;
  const phases = new Map<string, Phase>();
  /** Messages by receiver and id, as they arrived first. */
  const contents = new Map<string, string>();
  const arrivals: Arrival[] = [];
  let repetitions = 0;
  /** Whether the store has lost what it had: what was told since is told again, by other messages. */
  let hasFailedOver = false;

  function turn(receiver: string): void {
    phases.set(receiver, PHASES[Math.floor(kernel.random() * PHASES.length)] ?? 'works');
    kernel.note(`RECEIVER ${receiver} ${phases.get(receiver)}`);
    kernel.after(-Math.log(1 - kernel.random()) * MEAN_PHASE_MS, () => turn(receiver));
  }

  function phaseOf(receiver: string): Phase {
    return isCalm() ? 'works' : (phases.get(receiver) ?? 'works');
  }

  function arrive(receiver: string, message: Message): void {
    const key = `${receiver} ${message.id}`;
    const content = JSON.stringify(message);
    const before = contents.get(key);
    kernel.note(`ARRIVED at ${key}: ${content.slice(0, 300)}`);
    if (before === undefined) {
      contents.set(key, content);
      arrivals.push({ receiver, message });
    } else if (before === content) repetitions += 1;
    else fault(`message ${message.id} came again with another content: ${before} ${content}`);
  }

  /** Returns what happens to an attempt: whether the message arrives, and which answer comes after how long, if any. */
  function drawAttempt(phase: Phase) {
    const lastsMs = kernel.between(1, kernel.chance(0.1) ? 0.9 * TIMEOUT_MS : 200);
    const chance = kernel.random();
    const isBad = phase === 'flickers' && chance < 0.7;
    if (phase === 'works' || (phase === 'flickers' && !isBad)) {
      return { arrives: true, answer: { ok: true } as const, lastsMs };
    }
    if (phase === 'hangs') return { arrives: chance < 0.5, answer: undefined, lastsMs };
    const retryAfterMs = chance < 0.1 ? kernel.between(0, 15) * MINUTE : undefined;
    const answer = { ok: false, reason: '503', statusCode: 503, retryAfterMs } as const;
    // Of those that arrive, only the answer is lost.
    return { arrives: isBad && chance < 0.3, answer, lastsMs };
  }

  /** Compares what a receiver was told of a project with what is stored, by the ids of prompts or names of experiments, in order. */
  function compareTold(
    { name }: Receiver,
    type: (typeof TYPES)[number],
    { stored, project, isOver }: { stored: readonly string[]; project: string; isOver: boolean },
  ): readonly string[] {
    // A message names the first ten.
    const told = arrivals.flatMap(({ receiver, message }): (string | undefined)[] => {
      if (receiver !== name || message.type !== type) return [];
      if (message.data.project !== project) return [];
      const { count } = message.data;
      const names =
        message.type === 'experiments.finished'
          ? message.data.experiments.map(({ experiment }) => experiment)
          : message.data.prompts.map(({ prompt_id }) => prompt_id);
      return Array.from({ length: count }, (_, index) => names[index]);
    });
    const what = `${type} of ${project}`;
    const isPrefix = told.every((id, index) => {
      return index < stored.length && (id ?? stored[index]) === stored[index];
    });
    if (!isPrefix && !hasFailedOver) {
      const expected = stored.slice(0, told.length).join();
      return [`${name} was told ${told.join()} instead of ${expected}: ${what}`];
    }
    if (!isOver) return [];
    // What is not named can be any.
    const rest = [...told];
    const untold = stored.filter((id) => {
      const index = rest.includes(id) ? rest.indexOf(id) : rest.indexOf(undefined);
      if (index !== -1) rest.splice(index, 1);
      return index === -1;
    });
    return untold.length === 0 ? [] : [`${name} was not told of ${untold.join()}: ${what}`];
  }

  for (const { name } of RECEIVERS) turn(name);

  return {
    /** Returns the function with which a process sends a message once. */
    senderOf: (own: () => Life) => {
      return async (
        { name }: Receiver,
        message: Message,
        { signal }: { readonly signal: AbortSignal },
      ): Promise<Delivery> => {
        const { machine } = own();
        const { promise, resolve } = Promise.withResolvers<Delivery>();
        const { arrives, answer, lastsMs } = drawAttempt(phaseOf(name));
        const timeout = { ok: false, reason: 'no answer within 10 s' } as const;
        const cancel = machine.after(TIMEOUT_MS, () => resolve(timeout));
        signal.addEventListener('abort', () => resolve(timeout), { once: true });
        endings.dieSometimes(own(), DEATH_AT_MESSAGE);
        // A process that dies now has sent it.
        kernel.after(kernel.between(0.2, 20), () => {
          if (arrives) arrive(name, message);
          if (machine.isAlive()) endings.dieSometimes(own(), DEATH_AT_MESSAGE);
          if (answer !== undefined) machine.after(lastsMs, () => resolve(answer));
        });
        const delivery = await promise;
        cancel();
        return delivery;
      };
    },
    observe: (event: MonitorEvent) => {
      if (event.type !== 'notification.given_up') return;
      fault(`${event.receiver} was given up within hours: ${JSON.stringify(event)}`);
    },
    failedOver: () => {
      hasFailedOver = true;
    },
    /** @param isOver whether everything must have been told after a long time without faults */
    compare: (
      movesOf: (project: string) => readonly TransitionRow[],
      finishesOf: (project: string) => readonly FinishRow[],
      isOver: boolean,
    ): readonly string[] =>
      course.projects.flatMap(({ id: project }) => {
        const stored = (type: (typeof TYPES)[number]) =>
          type === 'experiments.finished'
            ? finishesOf(project).map(({ experiment }) => experiment)
            : movesOf(project).flatMap(({ to, id }) => (to === STATUSES[type] ? [id] : []));
        return RECEIVERS.flatMap((receiver) =>
          TYPES.filter((type) => receiver.on.some((kind) => type.endsWith(`.${kind}`))).flatMap(
            (type) => compareTold(receiver, type, { stored: stored(type), project, isOver }),
          ),
        );
      }),
    figures: () => ({ messages: arrivals.length, repetitions }),
  };
}

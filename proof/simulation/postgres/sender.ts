import type { DatabaseOptions, Statement } from '../../../src/store/postgres/database.ts';
import type { StoreWeather } from '../backend.ts';
import type { Kernel } from '../kernel.ts';
import type { Hooks } from '../process.ts';

/** Time limit of statements that begin after the abort, ms, as in src/store/postgres/database.ts. */
const AFTER_ABORT_TIMEOUT_MS = 1000;

/** Time limit of connecting, ms, as in src/store/postgres/servers.ts. */
const CONNECT_MS = 3000;
/** Probability that a statement to a server that cannot be reached finds no open connection. */
const NOT_CONNECTED = 0.5;

/** Probability that the repetition of a held-up commit fails. */
const REPETITION_FAILS = 0.5;
/** Probability that a commit is held up: its worker may have lost the project when it arrives. */
const COMMIT_IS_HELD_UP = 0.03;
/** Probability that a sender gets an error before its time limit if its statement or the answer is lost. */
const IS_RESET = 0.7;
/** Maximum time for which a statement is held up, ms: longer than its sender waits, or than its lease lasts. */
const MAX_HOLD_UP_MS = 90_000;
/** Minimum share of its time that a timer waits, by true time. */
const TIMERS_ARE_EXACT = 0.999;

/** Time after which an answer is late: something else may have happened meanwhile, ms. */
const LATE_MS = 2000;

export type Limits = Pick<DatabaseOptions, 'timeoutMs' | 'signal'>;

/** Answer to a statement. `unknown` is true if the statement may have been executed, or still may be. */
type Answer<Row> =
  { readonly rows: readonly Row[] } | { readonly error: unknown; readonly unknown: boolean };

/** Connections of one process to the server. Statements and answers take virtual time, and may be late or lost. */
export interface Sender {
  /** Sends a statement and resolves to its answer, or to an error when its time limit ends. */
  send<Row>(statement: Statement, values: readonly unknown[], limits: Limits): Promise<Answer<Row>>;
  /** Ends the wait for every answer. */
  giveUpAll(): void;
}

export interface SenderOptions {
  readonly kernel: Kernel;
  readonly process: Hooks;
  readonly leaseMs: number;
  readonly weather: () => StoreWeather;
  /** Number of the server that takes the statements: nothing that was sent to an earlier one arrives. */
  readonly reign: () => number;
  /** Executes a statement of the process now. @throws {DatabaseError} */
  readonly execute: (
    statement: Statement,
    values: readonly unknown[],
  ) => Promise<readonly unknown[]>;
  /** Creates the error of a lost connection. */
  readonly lost: () => unknown;
  readonly fault: (text: string) => void;
}

/** Fate of a statement, drawn when it is sent. */
interface Journey {
  readonly isDelivered: boolean;
  readonly isAnswered: boolean;
  /** Whether its sender gets an error before the time limit if statement or answer is lost. */
  readonly isReset: boolean;
  /** Number of the server to which it goes. */
  readonly sentTo: number;
  /** Time until the statement arrives, ms. */
  readonly outMs: number;
  /** Time from then until the answer arrives, ms. */
  readonly backMs: number;
}

export function createSender(options: SenderOptions): Sender {
  const { kernel, process, leaseMs, weather, reign, execute, lost, fault } = options;
  const { machine, isCutOff, onTrouble } = process;
  /** Functions that end the wait for an answer, one for each statement in flight. */
  const inFlight = new Set<() => void>();
  /** Time until which a commit is on its way that its sender has given up, by project. */
  const heldUp = new Map<string, number>();
  function drawDelayMs(slow: number): number {
    return kernel.chance(slow) ? kernel.between(100, 6000) : kernel.between(0.1, 3);
  }

  /** Draws the fate of a statement. Some are held up for longer than their sender waits. */
  function drawJourney(
    { commits }: StatementKinds,
    isUnreachable: boolean,
    { fails, slow }: StoreWeather,
  ): Journey {
    const isHeldUp =
      kernel.chance(slow) || (commits && fails > 0 && kernel.chance(COMMIT_IS_HELD_UP));
    return {
      isDelivered: !isUnreachable && !kernel.chance(fails / 2),
      isAnswered: !kernel.chance(fails / 2),
      isReset: !isUnreachable && kernel.chance(IS_RESET),
      sentTo: reign(),
      outMs: isHeldUp ? kernel.between(leaseMs / 2, MAX_HOLD_UP_MS) : drawDelayMs(slow),
      backMs: drawDelayMs(slow),
    };
  }

  /** Reports the effect of a statement on the database, before its sender gets the answer. */
  function report(kinds: StatementKinds, { isDone }: { readonly isDone: boolean }): void {
    if (kinds.renewsLease && isDone) process.onRenewed();
    if (kinds.endsLease) process.onLeft();
    if (kinds.writes && machine.isAlive()) process.onWritten();
  }

  /** Delivers a statement and resolves to its answer, or to an unknown outcome after `limitMs`. */
  function deliver<Row>(
    journey: Journey,
    kinds: StatementKinds,
    limitMs: number,
    executeNow: () => Promise<readonly unknown[]>,
  ): Promise<Answer<Row>> {
    const { isDelivered, isAnswered, isReset, sentTo, outMs, backMs } = journey;
    const { promise, resolve } = Promise.withResolvers<Answer<Row>>();
    const unanswered = () => ({ error: lost(), unknown: true });
    const giveUp = () => end(unanswered());
    const isInTime = isDelivered && isAnswered && outMs + backMs < limitMs * TIMERS_ARE_EXACT;
    // An answer that is in time needs no timer.
    const timer = isInTime ? undefined : machine.clock.timeout(limitMs, giveUp);
    const end = (given: Answer<Row>) => {
      if (!inFlight.delete(giveUp)) return;
      timer?.cancel();
      resolve(given);
    };
    const answer = (ms: number, given: Answer<Row>) => machine.after(ms, () => end(given));
    inFlight.add(giveUp);
    const sentAt = kernel.now();
    // Others may repeat the work before it arrives.
    if (!isDelivered || !isAnswered || outMs > Math.min(LATE_MS, limitMs)) onTrouble();
    const sendAnswer = (given: Answer<Row>) => {
      if (kernel.now() - sentAt > LATE_MS) onTrouble();
      report(kinds, { isDone: 'rows' in given });
      if (isCutOff()) {
        onTrouble();
        if (timer === undefined) answer(sentAt + limitMs - kernel.now(), unanswered());
      } else if (isAnswered) {
        machine.after(backMs, () => end(reign() === sentTo ? given : unanswered()));
      } else if (isReset) answer(backMs, unanswered());
    };
    const refuse = (error: unknown) => {
      // A server refuses with a code.
      if (!(error instanceof Error && 'code' in error)) fault(`a bug: ${String(error)}`);
      sendAnswer({ error, unknown: false });
    };
    const accept = (rows: readonly unknown[]) => sendAnswer({ rows: rows as readonly Row[] });
    const arrive = () => {
      // It ends before virtual time goes on, so no two statements overlap.
      if (reign() === sentTo) void executeNow().then(accept, refuse);
      else answer(backMs, unanswered());
    };
    // A statement on its way arrives even if its sender is dead by then.
    if (isDelivered) kernel.after(outMs, arrive);
    else if (isReset) answer(backMs, unanswered());
    return promise;
  }

  /** Resolves after `ms` to the error of a statement that was never sent. */
  function failToSend<Row>(ms: number): Promise<Answer<Row>> {
    const { promise, resolve } = Promise.withResolvers<Answer<Row>>();
    const fail = () => {
      if (inFlight.delete(fail)) resolve({ error: lost(), unknown: false });
    };
    inFlight.add(fail);
    machine.after(ms, fail);
    return promise;
  }

  return {
    send: (statement, values, { timeoutMs, signal }) => {
      const { fails, slow } = weather();
      const kinds = kindsOf(statement.text);
      const project = kinds.commits ? String(values[0]) : undefined;
      const isRepetition = kernel.now() < (heldUp.get(project ?? '') ?? -Infinity);
      const isUnreachable = isCutOff();
      const isNotConnected = isUnreachable && kernel.chance(NOT_CONNECTED);
      if (isNotConnected || kernel.chance(isRepetition ? REPETITION_FAILS : fails)) {
        return failToSend(isNotConnected ? CONNECT_MS : drawDelayMs(slow));
      }
      const isAborted = signal?.aborted === true;
      const limitMs = isAborted ? Math.min(AFTER_ABORT_TIMEOUT_MS, timeoutMs) : timeoutMs;
      const journey = drawJourney(kinds, isUnreachable, { fails, slow });
      if (project !== undefined && journey.isDelivered) process.onCommitting(project);
      if (journey.isDelivered && project !== undefined && journey.outMs > limitMs) {
        heldUp.set(project, kernel.now() + journey.outMs);
      }
      return deliver(journey, kinds, limitMs, () => execute(statement, values));
    },
    giveUpAll: () => inFlight.forEach((giveUp) => giveUp()),
  };
}

/** Patterns that classify a statement by its text. */
const PATTERNS = {
  /** Commits polls, or settles a failure. */
  writes: /INSERT INTO evalwatch\.(?:transition|settlement)\b/,
  commits: /SET token = \$3, prompts\b/,
  /** Changes the configured projects. */
  configures: /SET removed_at = CASE WHEN\b/,
  /** Gives a worker projects. */
  claims: /SET owner = \$1, token = gen_random_uuid\(\)/,
  postponesFailure: /UPDATE evalwatch\.failure AS f\s+SET tries\b/,
  settlesFailure: /UPDATE evalwatch\.failure AS f\s+SET settled_at\b/,
  renewsLease: /INSERT INTO evalwatch\.worker\b/,
  endsLease: /DELETE FROM evalwatch\.worker WHERE worker = \$1$/,
};

/** Names of all kinds. */
export const KINDS = Object.keys(PATTERNS) as (keyof typeof PATTERNS)[];

/** Kinds of a statement; it can have several. */
type StatementKinds = Readonly<Record<keyof typeof PATTERNS, boolean>>;

const kindsOfTexts = new Map<string, StatementKinds>();

/** Names of the kinds that any statement of this process has had so far. */
export function seenKinds(): readonly string[] {
  return KINDS.filter((name) => [...kindsOfTexts.values()].some((kinds) => kinds[name]));
}

export function kindsOf(text: string): StatementKinds {
  let kinds = kindsOfTexts.get(text);
  if (kinds === undefined) {
    const found = Object.entries(PATTERNS).map(([name, pattern]) => [name, pattern.test(text)]);
    kinds = Object.fromEntries(found) as StatementKinds;
    kindsOfTexts.set(text, kinds);
  }
  return kinds;
}

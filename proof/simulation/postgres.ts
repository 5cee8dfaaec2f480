import { join } from 'node:path';
import type * as ErrorsRoom from '../../src/monitor/errors.ts';
import type { StoreReader } from '../../src/monitor/ports/store.ts';
import type { Database, DatabaseOptions, Statement } from '../../src/store/postgres/database.ts';
import type * as PgErrorsRoom from '../../src/store/postgres/errors.ts';
import type * as PostgresRoom from '../../src/store/postgres/postgres-store.ts';
import type { AccessOptions, Backend, ReadLease, StoreWeather } from './backend.ts';
import type { Kernel } from './kernel.ts';
import { type Machine, START } from './machine.ts';
import { withoutStack } from './without-stack.ts';

/** Only read: the connections are simulated. */
const URL_OF_WORKERS = 'postgres://nobody@simulated/database';

/** Time limit of statements that begin after the abort, ms, as in src/store/postgres/database.ts. */
const AFTER_ABORT_TIMEOUT_MS = 1000;

/** Time limit of connecting, ms, as in src/store/postgres/session.ts. */
const CONNECT_MS = 3000;
/** How probable it is that a statement to a server that cannot be reached finds no open connection. */
const NOT_CONNECTED = 0.5;

/** What statements of these texts do. */
const KINDS = {
  /** Commits polls, or settles a failure. */
  writes: /INSERT INTO evalwatch\.(?:transition|settlement)\b/,
  commits: /version = (?:\w+\.)?version \+ 1/,
  /** Changes the configured projects if it returns a number. */
  configures: /UPDATE evalwatch\.configuration c SET epoch\b/,
  /** Gives a worker projects. */
  claims: /RETURNING p\.id, p\.epoch\b/,
  postponesFailure: /UPDATE evalwatch\.failure f\s+SET tries = \$2/,
  claimsFailures: /UPDATE evalwatch\.failure f SET claimed_by = \$4\s+FROM due\b/,
  beginsLease: /INSERT INTO evalwatch\.worker\b/,
  /** Renews a lease if it returns a row. */
  renewsLease: /UPDATE evalwatch\.worker SET expires_at\b/,
  /** Reads the leases of all workers. */
  readsLeases: /\bAS expires_us\b/,
  endsLease: /DELETE FROM evalwatch\.worker WHERE worker = \$1$/,
  grants: /UPDATE evalwatch\.rate\b/,
};
type Kind = keyof typeof KINDS;
const kinds = new Map<string, Readonly<Record<Kind, boolean>>>();

function kindOf(text: string): Readonly<Record<Kind, boolean>> {
  let kind = kinds.get(text);
  if (kind === undefined) {
    const found = Object.entries(KINDS).map(([name, pattern]) => [name, pattern.test(text)]);
    kind = Object.fromEntries(found) as Record<Kind, boolean>;
    kinds.set(text, kind);
  }
  return kind;
}

/** How probable it is that a commit fails which repeats one that is held up. */
const REPETITION_FAILS = 0.5;
/** How probable it is that the first commit of a project to another server is held up. */
const FIRST_IS_HELD_UP = 0.3;
/** The same of a commit that is made from what the last server had. */
const LATEST_IS_HELD_UP = 0.8;
/** How probable it is that the postponement of a failure is held up. */
const POSTPONEMENT_IS_HELD_UP = 0.06;
/** How much of its time a timer waits at least, by true time. */
const TIMERS_ARE_EXACT = 0.999;

/** Time after which an answer is late: something else may have happened meanwhile, ms. */
const LATE_MS = 2000;

/** The server's side: makes one statement after the other. */
export interface StatementServer extends AsyncDisposable {
  /** Makes a statement at this time of the server, whole epoch µs. Takes no virtual time. @throws {DatabaseError} */
  run(text: string, values: readonly unknown[], nowUs: number): Awaitable<readonly unknown[]>;
  projects(): Awaitable<readonly StoredProject[]>;
  openReader(): Promise<StoreReader>;
  /** Returns the function that takes back everything from now on. */
  readonly save?: () => () => void;
  /** Returns the worker that has claimed a failure. */
  readonly claimant?: (transitionId: number) => string | null;
}

type Awaitable<Value> = Value | Promise<Value>;

/** Goes on with a value at once, if it is there. */
function next<Value, Result>(
  value: Awaitable<Value>,
  work: (value: Value) => Awaitable<Result>,
): Awaitable<Result> {
  return value instanceof Promise ? value.then(work) : work(value);
}

export interface StoredProject {
  readonly id: string;
  readonly version: number;
  readonly owner: string | null;
  /** Null while it is configured. */
  readonly removed_at: number | null;
}

interface ClaimedFailure {
  readonly project: string;
  /** Null while it is configured. */
  readonly removed_at: number | null;
}

type Limits = Pick<DatabaseOptions, 'timeoutMs' | 'signal'>;

export interface PostgresBackendOptions {
  readonly kernel: Kernel;
  readonly source: string;
  readonly server: StatementServer;
  /** Length of the workers' leases, ms. */
  readonly leaseMs: number;
  readonly weather: () => StoreWeather;
  readonly fault: (text: string) => void;
  /** How far the clock of the database is off, ms. */
  readonly clockOffset: () => number;
}

/** The connections of the workers to their server: requests and answers take virtual time, and are late or lost on the way. */
export async function createPostgresBackend(options: PostgresBackendOptions): Promise<Backend> {
  const { kernel, source, server, leaseMs, weather, fault, clockOffset } = options;
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, file))) as Room;
  const { openPostgres } = await load<typeof PostgresRoom>('store/postgres/postgres-store.ts');
  const { toStoreError } = await load<typeof PgErrorsRoom>('store/postgres/errors.ts');
  const { StoreError } = await load<typeof ErrorsRoom>('monitor/errors.ts');

  /** Number of the server, or of its connections, that takes the statements: nothing of an earlier one arrives any more. */
  let reign = 0;

  /** Makes a statement now, and reports the polls that it committed. */
  function makeWatched(
    machine: Machine,
    { text }: Statement,
    kind: Readonly<Record<Kind, boolean>>,
    values: readonly unknown[],
    calls: Pick<AccessOptions, 'onClaiming' | 'onConfigured' | 'onFailureClaimed' | 'onCommitted'>,
  ): Awaitable<readonly unknown[]> {
    const { claims, claimsFailures, commits, configures, postponesFailure } = kind;
    const nowUs = Math.round((START + kernel.now() + clockOffset()) * 1000);
    if (postponesFailure && server.claimant !== undefined) {
      const id = Number(values[0]);
      const before = server.claimant(id);
      return next(server.run(text, values, nowUs), (rows) => {
        if (before !== null && before !== machine.name && server.claimant?.(id) !== before) {
          fault(`${machine.name} freed failure ${id}, which ${before} has claimed`);
        }
        return rows;
      });
    }
    if (configures) {
      const ids = values[0] as readonly string[];
      return next(server.projects(), (projects) => {
        const before = new Set(projects.flatMap((row) => (row.removed_at === null ? row.id : [])));
        return next(server.run(text, values, nowUs), (rows) => {
          const [made] = rows as readonly { readonly epoch: number | null }[];
          if (made !== undefined && made.epoch !== null) {
            kernel.note(`${machine.name} configures ${ids.join()}`);
            calls.onConfigured(ids.filter((id) => !before.has(id)));
          }
          return rows;
        });
      });
    }
    if (claimsFailures) {
      return next(server.run(text, values, nowUs), (rows) => {
        for (const { project, removed_at } of rows as readonly ClaimedFailure[]) {
          if (removed_at === null) calls.onFailureClaimed(project);
        }
        return rows;
      });
    }
    if (claims) {
      const onClaimed = calls.onClaiming();
      return next(server.run(text, values, nowUs), (rows) => {
        const claimed = (rows as readonly { readonly id: string }[]).map(({ id }) => id);
        if (claimed.length > 0) kernel.note(`${machine.name} owns ${claimed.join()}`);
        onClaimed(claimed);
        return rows;
      });
    }
    if (!commits) return server.run(text, values, nowUs);
    return next(server.projects(), (projects) => {
      const before = new Map(projects.map(({ id, version, owner }) => [id, { version, owner }]));
      return next(server.run(text, values, nowUs), (rows) =>
        next(server.projects(), (after) => {
          for (const { id, version, removed_at } of after) {
            const earlier = before.get(id);
            if (version === earlier?.version) continue;
            if (earlier?.owner !== machine.name) {
              fault(`${machine.name} committed ${id}, which ${earlier?.owner ?? 'nobody'} owns`);
            }
            if (removed_at !== null) {
              fault(`${machine.name} committed ${id}, which nobody has configured`);
            }
            calls.onCommitted(id);
          }
          return rows;
        }),
      );
    });
  }

  return {
    access: async (calls) => {
      const { machine, isCutOff, onWritten, onCommitting, onPostponementHeldUp } = calls;
      const { onTrouble, onUnanswered, onRenewed, onLeasesRead, onLeft, onGrantFailed } = calls;
      type Answer<Row> =
        { readonly rows: readonly Row[] } | { readonly error: unknown; readonly unknown: boolean };

      /** Promises of the answers that have not come, by what gives them up. */
      const inFlight = new Map<() => void, Promise<unknown>>();
      /** Until when a commit of a project is on its way, though its sender has given it up. */
      const heldUp = new Map<string, number>();
      const firstReign = reign;
      /** To which server the last commit of a project went. */
      const committedTo = new Map<string, number>();

      /** Sends a statement; it arrives or not, and so does its answer. */
      function send<Row>(
        statement: Statement,
        values: readonly unknown[],
        { timeoutMs, signal }: Limits,
      ): Promise<Answer<Row>> {
        const { promise, resolve } = Promise.withResolvers<Answer<Row>>();
        const lost = () =>
          withoutStack(() => new StoreError('io', 'simulated: the connection was lost'));
        const { fails, slow } = weather();
        const way = () =>
          kernel.chance(slow) ? kernel.between(100, 6000) : kernel.between(0.1, 3);
        const kind = kindOf(statement.text);
        const project = kind.commits ? String(values[0]) : undefined;
        const isRepetition = kernel.now() < (heldUp.get(project ?? '') ?? -Infinity);
        const isUnreachable = isCutOff();
        const isNotConnected = isUnreachable && kernel.chance(NOT_CONNECTED);
        if (isNotConnected || kernel.chance(isRepetition ? REPETITION_FAILS : fails)) {
          // Nothing was sent.
          if (kind.grants) onGrantFailed();
          const fail = () => {
            if (inFlight.delete(fail)) resolve({ error: lost(), unknown: false });
          };
          inFlight.set(fail, promise);
          machine.after(isNotConnected ? CONNECT_MS : way(), fail);
          return promise;
        }
        const unanswered = () => ({ error: lost(), unknown: true });
        const giveUp = () => end(unanswered());
        const limitMs = signal?.aborted === true ? AFTER_ABORT_TIMEOUT_MS : timeoutMs;
        const arrives = !isUnreachable && !kernel.chance(fails / 2);
        const returns = !kernel.chance(fails / 2);
        const isReset = !isUnreachable && kernel.chance(0.7);
        // What is on its way arrives even if its sender is dead by then.
        // Some are held up on the way for longer than their sender waits, or than its lease lasts.
        let isHeldUp = kernel.chance(slow);
        let sentTo = reign;
        if (project !== undefined) {
          const isPreceded = arrives && onCommitting(project);
          if (isPreceded) sentTo += 1;
          const isFirst = (committedTo.get(project) ?? firstReign) !== sentTo;
          isHeldUp ||= isFirst && kernel.chance(isPreceded ? LATEST_IS_HELD_UP : FIRST_IS_HELD_UP);
          committedTo.set(project, sentTo);
        } else if (fails > 0 && kind.postponesFailure) {
          isHeldUp ||= kernel.chance(POSTPONEMENT_IS_HELD_UP);
          if (isHeldUp) onPostponementHeldUp();
        }
        const takes = isHeldUp ? kernel.between(leaseMs / 2, 90_000) : way();
        const back = way();
        const isInTime = arrives && returns && takes + back < limitMs * TIMERS_ARE_EXACT;
        const timer = isInTime ? undefined : machine.clock.timeout(limitMs, giveUp);
        const end = (given: Answer<Row>) => {
          if (!inFlight.delete(giveUp)) return;
          timer?.cancel();
          resolve(given);
        };
        const answer = (ms: number, given: Answer<Row>) => machine.after(ms, () => end(given));
        inFlight.set(giveUp, promise);
        const sentAt = kernel.now();
        // Others may repeat the work before it arrives.
        if (!arrives || !returns || takes > LATE_MS) onTrouble();
        const leave = (given: Answer<Row>) => {
          const { beginsLease, endsLease, renewsLease, writes } = kind;
          if (kernel.now() - sentAt > LATE_MS) onTrouble();
          const isRenewed = renewsLease && 'rows' in given && given.rows.length > 0;
          if (beginsLease || isRenewed) onRenewed();
          if (endsLease) onLeft();
          if (machine.isAlive() && writes) onWritten();
          if (isCutOff()) {
            onTrouble();
            // An answer that would be in time has no timer.
            if (timer === undefined) answer(sentAt + limitMs - kernel.now(), unanswered());
          } else if (returns) {
            machine.after(back, () => end(reign === sentTo ? given : unanswered()));
          } else if (isReset) answer(back, unanswered());
        };
        const refuse = (error: unknown) => {
          // A server refuses with a code.
          if (!(error instanceof Error && 'code' in error)) fault(`a bug: ${String(error)}`);
          leave({ error, unknown: false });
        };
        const accept = (rows: readonly unknown[]) => leave({ rows: rows as readonly Row[] });
        const arrive = () => {
          if (reign !== sentTo) return void answer(back, unanswered());
          let made: Awaitable<readonly unknown[]>;
          try {
            made = makeWatched(machine, statement, kind, values, calls);
          } catch (error) {
            return refuse(error);
          }
          // Virtual time stands still meanwhile, so no two statements overlap.
          if (made instanceof Promise) {
            const left = made.then(accept, refuse);
            void kernel.real(() => left);
          } else accept(made);
        };
        if (arrives && project !== undefined && takes > limitMs) {
          heldUp.set(project, kernel.now() + takes);
        }
        if (arrives) kernel.after(takes, arrive);
        else if (isReset) answer(back, unanswered());
        return promise;
      }

      const giveUpAll = () => inFlight.forEach((_, giveUp) => giveUp());
      const connect = (limits: Limits): Database => {
        let isClosed = false;
        /** Refuses statements after the close, as the real connections do. */
        const refuseIfClosed = () => {
          if (isClosed) throw new StoreError('other', 'simulated: the store is closed');
        };
        return {
          query: async <Row>(statement: Statement, values: readonly unknown[] = []) => {
            refuseIfClosed();
            const sentAt = kernel.now();
            const given = await send<Row>(statement, values, limits);
            if ('error' in given || kernel.now() - sentAt > LATE_MS) onUnanswered();
            if ('error' in given) throw toStoreError(given.error, []);
            if (kindOf(statement.text).readsLeases) {
              onLeasesRead(given.rows as unknown as readonly ReadLease[]);
            }
            return given.rows;
          },
          // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as the interface has it
          attempt: async <Row>(statement: Statement, values: readonly unknown[]) => {
            refuseIfClosed();
            const given = await send<Row>(statement, values, limits);
            if ('rows' in given) return { rows: given.rows };
            return { error: toStoreError(given.error, []), unknown: given.unknown };
          },
          transaction: () => Promise.reject(new Error('the tables were made before')),
          keepPlans: () => {},
          close: async () => {
            while (inFlight.size > 0) await Promise.all(inFlight.values());
            isClosed = true;
          },
        };
      };

      const open = (limits: Limits): Database => {
        limits.signal?.addEventListener('abort', giveUpAll);
        return connect(limits);
      };

      return {
        open: async ({ clock, emit, signal }) => {
          const name = machine.name;
          const lease = { leaseMs, clock };
          const postgres = await openPostgres({
            url: URL_OF_WORKERS,
            worker: name,
            ...lease,
            emit,
            signal,
            open,
          });
          return {
            store: postgres.store,
            info: { engine: 'postgresql', version: postgres.store.serverVersion },
            isInPlace: () => true,
            shared: { ...postgres, name, leaseMs },
          };
        },
        kill: () => {},
      };
    },
    openReader: () => server.openReader(),
    loseStatements: () => {
      reign += 1;
    },
    makeStandby:
      server.save &&
      (() => {
        const takeBack = server.save?.();
        return () => {
          takeBack?.();
          reign += 1;
        };
      }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

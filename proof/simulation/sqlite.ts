import { join } from 'node:path';
import type * as ErrorsRoom from '../../src/monitor/errors.ts';
import type * as DatabaseRoom from '../../src/store/sqlite/database.ts';
import type { PollPart } from '../../src/store/sqlite/sql/poll-rows.ts';
import type * as ReaderRoom from '../../src/store/sqlite/sqlite-reader.ts';
import type * as SqliteRoom from '../../src/store/sqlite/sqlite-store.ts';
import type * as CallsRoom from '../../src/store/sqlite/thread/calls.ts';
import type { StoreThread } from '../../src/store/sqlite/thread/thread-client.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import type { Backend, StoreWeather } from './backend.ts';
import type { Kernel } from './kernel.ts';
import type { Machine } from './machine.ts';

/** Creates a store in a SQLite file, for one process at a time. */
export async function createSqliteBackend({
  kernel,
  source,
  weather,
}: {
  readonly kernel: Kernel;
  readonly source: string;
  readonly weather: () => StoreWeather;
}): Promise<Backend> {
  const { openStore } = (await import(
    join(source, 'store/sqlite/sqlite-store.ts')
  )) as typeof SqliteRoom;
  const { openReader } = (await import(
    join(source, 'store/sqlite/sqlite-reader.ts')
  )) as typeof ReaderRoom;
  const directory = await temporaryDirectory();
  const path = join(directory.path, 'store.db');
  return {
    access: async ({ machine, onWritten, onRefused, onCommitted }) => {
      const threads = await createStoreThreads({
        kernel,
        machine,
        source,
        disk: weather,
        onWritten,
        onRefused,
        onCommitted: ({ project }) => onCommitted(project),
      });
      return {
        open: async ({ clock, emit }) => {
          const store = await kernel.real(() =>
            openStore({ path, clock, emit, startThread: threads.start }),
          );
          return {
            store,
            info: { engine: 'sqlite', version: store.sqliteVersion },
            isInPlace: () => store.isInPlace(),
            shared: undefined,
          };
        },
        kill: () => threads.kill(),
      };
    },
    openReader: () => openReader({ path }),
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  };
}

interface StoreThreadOptions {
  readonly kernel: Kernel;
  readonly machine: Machine;
  readonly source: string;
  readonly disk: () => StoreWeather;
  /** Called when a write is on the disk, before its answer. */
  readonly onWritten: () => void;
  readonly onRefused: () => void;
  /** Called when a commit of a poll with listings is on the disk. */
  readonly onCommitted: (poll: Pick<PollPart, 'project'>) => void;
}

/** SQLite in this thread: the answers come after a virtual time, and none after a kill. */
interface SimulatedThreads {
  readonly start: (paths: DatabaseRoom.DatabasePaths) => Promise<StoreThread>;
  /** Ends the connections as a kill does: what is not committed is lost. */
  kill(): void;
}

async function createStoreThreads(options: StoreThreadOptions): Promise<SimulatedThreads> {
  const { kernel, machine, source, disk, onWritten, onRefused, onCommitted } = options;
  const { openDatabase } = (await import(
    join(source, 'store/sqlite/database.ts')
  )) as typeof DatabaseRoom;
  const { makeCall } = (await import(
    join(source, 'store/sqlite/thread/calls.ts')
  )) as typeof CallsRoom;
  const { StoreError } = (await import(join(source, 'monitor/errors.ts'))) as typeof ErrorsRoom;
  let close: (() => void) | undefined;

  async function start(paths: DatabaseRoom.DatabasePaths): Promise<StoreThread> {
    // The files are never replaced, and a check in every virtual second takes real time.
    const database = await openDatabase(paths, () => () => {});
    let isClosed = false;
    close = () => {
      if (!isClosed) database.close();
      isClosed = true;
    };
    /** When the thread has finished its earlier calls. */
    let freeAt = 0;
    /** Polls of a transaction that has not ended. */
    let written: PollPart[] = [];

    function inTurn<Result>(work: () => Result): Promise<Result> {
      const { promise, resolve, reject } = Promise.withResolvers<Result>();
      const takes = kernel.chance(disk().slow) ? kernel.between(50, 3000) : kernel.between(0.05, 3);
      freeAt = Math.max(freeAt, kernel.now()) + takes;
      machine.after(freeAt - kernel.now(), () => {
        let settle: () => void;
        try {
          const result = copyOf(work());
          settle = () => resolve(result);
        } catch (error) {
          settle = () => reject(error instanceof Error ? error : new Error(String(error)));
        }
        machine.after(kernel.between(0.01, 0.5), settle);
      });
      return promise;
    }

    return {
      sqliteVersion: database.sqliteVersion,
      news: database.news,
      read: (call) => {
        const asked = copyOf(call);
        return inTurn(() => makeCall(database.reads, asked)) as never;
      },
      write: (calls, place) => {
        const asked = copyOf(calls);
        return inTurn(() => {
          if (place.begins) {
            written = [];
            if (kernel.chance(disk().fails)) {
              onRefused();
              throw new StoreError('full', 'simulated: no space');
            }
          }
          const answer = database.write(asked, place);
          for (const [index, call] of asked.entries()) {
            if (call.method !== 'commitPoll' || answer.results[index] === undefined) continue;
            const [part] = call.args;
            if (part.listings.length > 0 && !part.isContinued) written.push(part);
          }
          if (place.ends) for (const poll of written) onCommitted(poll);
          onWritten();
          return answer;
        });
      },
      close: () => inTurn(() => close?.()),
    };
  }

  return { start, kill: () => close?.() };
}

/** Returns a value as another thread would receive it: `structuredClone`, but faster for most messages. */
function copyOf<Value>(value: Value): Value {
  return copy(value) as Value;
}

function copy(value: unknown): unknown {
  if (typeof value === 'function') throw new TypeError('a function cannot be sent');
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  if (value instanceof Map) {
    return new Map(Array.from(value, ([key, one]) => [copy(key), copy(one)]));
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return structuredClone(value);
  const copied: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const one: unknown = (value as Readonly<Record<string, unknown>>)[name];
    copied[name] = typeof one === 'object' || typeof one === 'function' ? copy(one) : one;
  }
  return copied;
}

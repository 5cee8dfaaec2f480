import { join } from 'node:path';
import type * as ErrorsRoom from '../../src/monitor/errors.ts';
import type * as DatabaseRoom from '../../src/store/sqlite/database.ts';
import type { PollPart } from '../../src/store/sqlite/sql/poll-rows.ts';
import type * as ReaderRoom from '../../src/store/sqlite/sqlite-reader.ts';
import type * as SqliteRoom from '../../src/store/sqlite/sqlite-store.ts';
import type { StoreThread } from '../../src/store/sqlite/client.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import type { Backend, StoreWeather } from './backend.ts';
import type { Kernel } from './kernel.ts';

interface SqliteOptions {
  readonly kernel: Kernel;
  /** Directory of the sources under test. */
  readonly source: string;
  readonly weather: () => StoreWeather;
}

/**
 * Creates a store in a SQLite file, for one process at a time. SQLite runs in this thread: its answers come after a virtual
 * time, and none after a kill.
 */
export async function createSqliteBackend({
  kernel,
  source,
  weather,
}: SqliteOptions): Promise<Backend> {
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, file))) as Room;
  const { openStore } = await load<typeof SqliteRoom>('store/sqlite/sqlite-store.ts');
  const { openReader } = await load<typeof ReaderRoom>('store/sqlite/sqlite-reader.ts');
  const { openDatabase } = await load<typeof DatabaseRoom>('store/sqlite/database.ts');
  const { StoreError } = await load<typeof ErrorsRoom>('monitor/errors.ts');
  const directory = await temporaryDirectory();
  const path = join(directory.path, 'store.db');
  return {
    access: async ({ machine, onWritten, onRefused, onCommitted }) => {
      let close: (() => void) | undefined;
      let isOpen = false;

      async function start(paths: DatabaseRoom.DatabasePaths): Promise<StoreThread> {
        // The files are never replaced, and a check in every virtual second takes real time.
        const database = await openDatabase(paths, { remember: () => () => {} });
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
          const takes = kernel.chance(weather().slow)
            ? kernel.between(50, 3000)
            : kernel.between(0.05, 3);
          freeAt = Math.max(freeAt, kernel.now()) + takes;
          machine.after(freeAt - kernel.now(), () => {
            let settle: () => void;
            try {
              const result = structuredClone(work());
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
          read: (call) => {
            const asked = structuredClone(call);
            // Opening takes real time.
            if (!isOpen) return Promise.resolve(structuredClone(database.read(asked)) as never);
            return inTurn(() => database.read(asked)) as never;
          },
          write: (calls, place) => {
            const asked = structuredClone(calls);
            return inTurn(() => {
              if (place.begins) {
                written = [];
                if (kernel.chance(weather().fails)) {
                  onRefused();
                  throw new StoreError('full', 'simulated: no space');
                }
              }
              const answer = database.write(asked, place);
              for (const [index, call] of asked.entries()) {
                if (call.method !== 'commitPoll' || answer[index] === undefined) continue;
                const [part] = call.args;
                if (part.listings.length > 0 && !part.isContinued) written.push(part);
              }
              if (place.ends) for (const { project } of written) onCommitted(project);
              onWritten();
              return answer;
            });
          },
          close: () => inTurn(() => close?.()),
        };
      }

      return {
        open: async ({ clock, emit }) => {
          const store = await kernel.real(() =>
            openStore({ path, clock, emit, startThread: start }),
          );
          isOpen = true;
          return {
            store,
            notifications: store.notifications,
            info: { engine: 'sqlite', version: store.sqliteVersion },
            isInPlace: () => store.isInPlace(),
            shared: undefined,
          };
        },
        // What is not committed is lost.
        kill: () => close?.(),
      };
    },
    openReader: () => openReader({ path }),
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  };
}

import { join } from 'node:path';
import type * as ReaderRoom from '../../src/store/sqlite/sqlite-reader.ts';
import type * as SqliteRoom from '../../src/store/sqlite/sqlite-store.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import type { Backend, StoreWeather } from './backend.ts';
import type { Kernel } from './kernel.ts';
import { createStoreThreads } from './store-thread.ts';

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

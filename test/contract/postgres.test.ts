import { afterAll, beforeAll, describe } from 'vitest';
import { systemClock } from '../../src/app/clock.ts';
import { openPostgresReader } from '../../src/store/postgres/postgres-reader.ts';
import { startPostgres } from '../support/postgres.ts';
import { postgresPrograms, type PostgresServer } from '../support/postgres-server.ts';
import { describePostgres } from './postgres-suite.ts';

/** Resets a store to its state after creation, except for the numbers of its ownerships and configurations. */
const CLEAR = `DO $$ BEGIN
  EXECUTE (
    SELECT 'TRUNCATE ' || string_agg(format('evalwatch.%I', tablename), ', ') || ' RESTART IDENTITY'
    FROM pg_tables WHERE schemaname = 'evalwatch' AND tablename NOT IN ('schema_version', 'rate', 'configuration'));
END $$`;

describe.skipIf(postgresPrograms() === undefined)('with PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  describePostgres('the PostgreSQL', async () => {
    const { name, url } = await server.createDatabase();
    const client = await server.connect(name);
    return {
      url,
      openReader: () => openPostgresReader({ clock: systemClock, url }),
      clear: async () => {
        await client.query(CLEAR);
      },
    };
  });
});

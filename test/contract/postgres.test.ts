import { afterAll, beforeAll, describe } from 'vitest';
import { systemClock } from '../../src/app/clock.ts';
import { openPostgresReader } from '../../src/store/postgres/postgres-reader.ts';
import { startPostgres } from '../support/postgres.ts';
import { postgresPrograms, type PostgresServer } from '../support/postgres-server.ts';
import { describePostgres } from './postgres-suite.ts';

describe.skipIf(postgresPrograms === undefined)('with PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  describePostgres('the PostgreSQL', async () => {
    const { url } = await server.createDatabase();
    return { url, openReader: () => openPostgresReader({ clock: systemClock, url }) };
  });
});

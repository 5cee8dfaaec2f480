import { setImmediate } from 'node:timers/promises';
import { systemClock } from '../../src/app/clock.ts';
import type { Database, Statement } from '../../src/store/postgres/database.ts';
import { toStoreError } from '../../src/store/postgres/errors.ts';
import { createModelServer } from '../../proof/simulation/model/server.ts';
import type { StatementServer } from '../../proof/simulation/postgres/statement-server.ts';
import { SOURCE } from '../../proof/row.ts';
import { describePostgres } from './postgres-suite.ts';

describePostgres('the modelled PostgreSQL', async () => {
  const server = await createModelServer(SOURCE);
  const open = () => connect(server);
  const url = 'postgres://nobody@modelled/database';
  return { url, open, openReader: () => server.openReader() };
});

/** Returns a database that always answers, each statement in a turn of the event loop of its own. */
function connect(server: StatementServer): Database {
  const running = new Set<Promise<unknown>>();
  async function query<Row>({ text }: Statement, values: readonly unknown[] = []) {
    const turn = setImmediate();
    running.add(turn);
    await turn;
    running.delete(turn);
    try {
      return (await server.run(text, values, systemClock.now() * 1000)) as readonly Row[];
    } catch (error) {
      throw toStoreError(error, []);
    }
  }
  return {
    query,
    // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as the interface has it
    attempt: async <Row>(statement: Statement, values: readonly unknown[]) => ({
      rows: await query<Row>(statement, values),
    }),
    transaction: () => Promise.reject(new Error('the model has its tables from the beginning')),
    keepPlans: () => {},
    close: async () => {
      await Promise.all(running);
    },
  };
}

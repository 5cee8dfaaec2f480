import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FailureKey } from '../../../src/monitor/ports/store.ts';
import { startPostgres } from '../../support/postgres.ts';
import { postgresPrograms, type PostgresServer } from '../../support/postgres-server.ts';
import { startWorker } from '../../support/postgres-store.ts';

const WAITING = `SELECT FROM pg_stat_activity
  WHERE wait_event_type = 'Lock' AND datname = current_database()`;

const NONE: FailureKey = { transitionId: 0, foundAt: 0, promptId: '' };

describe.skipIf(postgresPrograms() === undefined)('failures counted by several workers', () => {
  let server: PostgresServer;
  let url: string;
  let database: string;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(async () => {
    ({ url, name: database } = await server.createDatabase());
  });

  type Worker = Awaited<ReturnType<typeof startWorker>>;

  /** Lets `count` prompts of project p fail. */
  async function fail(worker: Worker, count: number): Promise<readonly FailureKey[]> {
    const all = (status: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`x${index}`, status]));
    await worker.store.configureProjects(['p'], 1);
    await worker.claim(['p']);
    await worker.see('p', all('RUNNING'));
    const failed = await worker.see('p', all('FAILED'), 1000);
    return (failed ?? []).map(({ transitionId, id }) => {
      return { transitionId, foundAt: 1000, promptId: id };
    });
  }

  const settle = ({ store }: Worker, failure: FailureKey, error_id: string) =>
    store.settleFailure(
      failure,
      { errorInfo: { error_id, error_msg: 'x' }, errorMsgTruncated: false },
      5000 + failure.transitionId,
    );

  async function totals({ store }: Worker): Promise<ReadonlyMap<string, number>> {
    const { projects } = await store.snapshot();
    const errors = projects[0]?.listings.get('prompt')?.errors ?? [];
    return new Map(errors.map(({ label, count }) => [label, count]));
  }

  it('have at most 20 error_id labels and count once even if every worker settles them', async () => {
    await using first = await startWorker(url);
    await using second = await startWorker(url);
    await using third = await startWorker(url);
    const workers = [first, second, third];
    const failures = await fail(first, 90);
    await Promise.all(
      workers.flatMap((worker) =>
        failures.map((failure, index) => settle(worker, failure, `E${index % 45}`)),
      ),
    );
    const found = await totals(first);
    const { other, ...own } = Object.fromEntries(found);
    expect(Object.values(own)).toEqual(Array(20).fill(2));
    expect(other).toBe(50);
    for (const worker of workers) {
      expect(await totals(worker)).toEqual(found);
      expect(worker.log.of('store.commit_failed')).toEqual([]);
    }
  });

  it('have no cause if a worker of an earlier version settled them', async () => {
    await using worker = await startWorker(url);
    const [old = NONE, own = NONE] = await fail(worker, 2);
    await settle(worker, old, 'E');
    await server.query(database, 'UPDATE evalwatch.failure SET cause = NULL');
    await settle(worker, own, 'E');
    const { causes } = await worker.store.causes({ since: 0, limit: 9 });
    expect(causes).toMatchObject([{ count: 1, transitionId: own.transitionId }]);
    const failures = await worker.store.failures({});
    expect(failures.map(({ cause }) => cause)).toEqual([causes[0]?.cause, undefined]);
  });

  it('are counted as other if another worker takes the last label at the same time', async () => {
    await using worker = await startWorker(url);
    const [first = NONE, second = NONE] = await fail(worker, 2);
    await settle(worker, first, 'known');
    const blocking = await server.connect(database);
    await blocking.query('BEGIN');
    await blocking.query(
      `INSERT INTO evalwatch.error_total
       SELECT project_key, 'of another worker ' || n, n, 1, 1, 1
       FROM evalwatch.error_total, generate_series(1, 20) n WHERE n <> place`,
    );
    const settling = settle(worker, second, 'late');
    await server.untilRows(database, WAITING, (rows) => rows > 0);
    await blocking.query('COMMIT');
    await blocking.end();
    await settling;
    const found = await totals(worker);
    expect(found.size).toBe(21);
    expect([found.get('known'), found.get('late'), found.get('other')]).toEqual([1, undefined, 1]);
    expect(worker.log.of('store.commit_failed')).toEqual([]);
  });
});

import { isDeepStrictEqual } from 'node:util';
import { createRecordBudget } from '../../../src/evaluation-api/listing/record-budget.ts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { projectsDigestOf } from '../../../src/coordination/projects-digest.ts';
import { createPoller } from '../../../src/monitor/poller.ts';
import type {
  ListingAnswer,
  ListingBasis,
  ListOptions,
} from '../../../src/monitor/ports/service.ts';
import { listingOf, neverStopping } from '../../support/monitor.ts';
import { startPostgres } from '../../support/postgres.ts';
import { postgresPrograms, type PostgresServer } from '../../support/postgres-server.ts';
import { startWorker } from '../../support/postgres-store.ts';

type Statuses = Readonly<Record<string, string>>;

describe.skipIf(postgresPrograms() === undefined)('a database that lost its last commits', () => {
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

  /** Starts a worker that owns project p and has polled it with x RUNNING. */
  const start = async () => {
    const worker = await startWorker(url);
    const service = serviceThatKnowsWhatItTold();
    const poller = createPoller({
      service,
      store: worker.store,
      clock: systemClock,
      emit: worker.log.emit,
      missingAfter: () => 2,
      maxIntervalMs: () => 60_000,
      holdRecords: createRecordBudget(Infinity, systemClock).holdRecords,
      shutdown: neverStopping(),
    });
    await worker.store.configureProjects(['p'], 1);
    await worker.claim(['p']);
    const poll = async (statuses: Statuses) => {
      service.shows(statuses);
      const now = systemClock.now();
      const run = { dueAt: now, nextAt: now + 1000 };
      return await poller.poll({ id: 'p', datasets: false }, run);
    };
    await poll({ x: 'RUNNING', y: 'RUNNING' });
    await poll({ x: 'RUNNING', y: 'PENDING' });
    return {
      worker,
      poll,
      told: () => worker.log.of('record.transition').map(({ transition: { id, to } }) => [id, to]),
      reasons: () => worker.log.of('store.commit_refused').map(({ reason }) => reason),
      [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose](),
    };
  };

  /** Saves the projects and records, without ownerships. */
  const remember = () =>
    server.query(
      database,
      `CREATE TABLE kept AS SELECT id, version, prompts FROM evalwatch.project;
       CREATE TABLE kept_record AS SELECT * FROM evalwatch.record`,
    );
  const goBack = () =>
    server.query(
      database,
      `UPDATE evalwatch.project p SET version = k.version, prompts = k.prompts FROM kept k WHERE k.id = p.id;
       DELETE FROM evalwatch.record;
       INSERT INTO evalwatch.record SELECT * FROM kept_record;
       DELETE FROM evalwatch.transition;
       DELETE FROM evalwatch.failure`,
    );

  it('stores a lost transition again even if the listing has not changed since', async () => {
    await using given = await start();
    await remember();
    const failed = { x: 'FAILED', y: 'PENDING' };
    await given.poll(failed);
    await goBack();

    await given.poll(failed);
    await given.worker.store.flush();
    expect(await given.poll(failed)).toBeUndefined();
    expect(await given.poll(failed)).toMatchObject({ transitions: 1, unchanged: false });

    expect(given.told().slice(1)).toEqual([
      ['x', 'FAILED'],
      ['x', 'FAILED'],
    ]);
    expect(given.reasons()).toEqual(['version', 'version']);
    expect(await given.worker.store.pendingFailures({ limitPerProject: 9 })).toHaveLength(1);
    await given.poll(failed);
    await given.worker.store.flush();
    expect(given.reasons()).toHaveLength(2);
  });

  it('rejects commits under an epoch that it has given to another worker', async () => {
    await using given = await start();
    await server.query(database, "UPDATE evalwatch.project SET owner = 'somebody else'");

    expect(await given.poll({ x: 'RUNNING', y: 'PENDING' })).toMatchObject({ unchanged: true });
    await given.worker.store.flush();
    expect(await given.poll({ x: 'FAILED', y: 'PENDING' })).toBeUndefined();

    expect(given.reasons()).toEqual(['epoch', 'epoch']);
    expect(await given.worker.store.pendingFailures({ limitPerProject: 9 })).toEqual([]);
  });

  it('stores a lost transition again together with a new one', async () => {
    await using given = await start();
    await remember();
    await given.poll({ x: 'FAILED', y: 'PENDING' });
    await goBack();

    const next = { x: 'FAILED', y: 'RUNNING' };
    expect(await given.poll(next)).toBeUndefined();
    expect(await given.poll(next)).toMatchObject({ transitions: 2 });

    const transitions = await given.worker.store.transitions({});
    expect(transitions.map(({ id, to }) => `${id} ${to}`).toSorted()).toEqual([
      'x FAILED',
      'y RUNNING',
    ]);
  });

  it('restores the projects of a lost reload unless the configuration has changed since', async () => {
    await using worker = await startWorker(url);
    const newest = async () => (await worker.coordinator.beat(worker.identity))?.configured;
    const configured = async () =>
      (await worker.store.snapshot()).projects.map(({ project }) => project);
    expect(await newest()).toEqual({ epoch: 0, digest: '' });
    await worker.store.configureProjects(['alpha', 'gamma'], 1);
    const lost = await newest();
    expect(lost?.digest).toBe(projectsDigestOf(['gamma', 'alpha']));
    await server.query(
      database,
      `CREATE TABLE kept_project AS SELECT * FROM evalwatch.project;
       CREATE TABLE kept_configuration AS SELECT * FROM evalwatch.configuration`,
    );
    await worker.store.configureProjects(['beta', 'ü'], 2);
    const reloaded = await newest();
    await server.query(
      database,
      `DELETE FROM evalwatch.project;
       INSERT INTO evalwatch.project SELECT * FROM kept_project;
       DELETE FROM evalwatch.configuration;
       INSERT INTO evalwatch.configuration SELECT * FROM kept_configuration`,
    );
    expect(await newest()).toEqual(lost);

    const restore = (epoch = NaN) => worker.store.restoreProjects(['beta', 'ü'], 3, epoch);
    expect(await restore(reloaded?.epoch)).toBe(false);
    expect(await configured()).toEqual(['alpha', 'gamma']);
    expect(await restore(lost?.epoch)).toBe(true);

    expect((await newest())?.digest).toBe(projectsDigestOf(['ü', 'beta']));
    expect(await configured()).toEqual(['beta', 'ü']);
    expect((await worker.claim(['alpha', 'beta', 'ü'])).toSorted()).toEqual(['beta', 'ü']);
  });

  it('restores no projects while a reload is under way', async () => {
    await using worker = await startWorker(url);
    const blocking = await server.connect(database);
    await blocking.query('BEGIN');
    await blocking.query('LOCK evalwatch.configuration');
    const reloading = worker.store.configureProjects(['beta'], 1);

    expect(await worker.store.restoreProjects(['alpha'], 2, 0)).toBe(false);

    await blocking.end();
    await reloading;
    expect(await worker.store.projects()).toEqual(['beta']);
  });
});

interface StatusesBasis extends ListingBasis {
  readonly statuses: Statuses;
}

/** Stubs a service that answers with the difference from the previous listing. */
function serviceThatKnowsWhatItTold() {
  let now: Statuses = {};
  return {
    shows: (statuses: Statuses) => {
      now = statuses;
    },
    list: async (_project: string, _kind: string, options: ListOptions): Promise<ListingAnswer> => {
      options.onRequest();
      const { previous, allowDifference } = options;
      const before =
        previous !== undefined && isOfStatuses(previous) ? previous.statuses : undefined;
      if (isDeepStrictEqual(before, now)) return { unchanged: true, full: false };
      const basis: StatusesBasis = { statuses: now };
      const size = Object.keys(now).length;
      if (before === undefined || !allowDifference) {
        return { unchanged: false, listing: listingOf(now), size, recordBytes: 0, basis };
      }
      const changed = Object.entries(now).filter(([id, status]) => before[id] !== status);
      const vanished = Object.keys(before).filter((id) => now[id] === undefined);
      const listing = listingOf(Object.fromEntries(changed));
      return { unchanged: false, listing, size, recordBytes: 0, vanished, basis };
    },
  };
}

function isOfStatuses(basis: ListingBasis): basis is StatusesBasis {
  return 'statuses' in basis;
}

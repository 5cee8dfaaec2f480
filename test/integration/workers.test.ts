import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { ask } from '../support/ask.ts';
import { startHere } from '../support/daemon-here.ts';
import { type Lines, startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { readEvents, take } from '../support/event-stream.ts';
import { PASSWORD, startPostgres } from '../support/postgres.ts';
import {
  connectPatiently,
  describePostgres,
  type TestDatabase,
} from '../support/postgres-store.ts';
import { scrape } from '../support/scrape.ts';
import { errorOf, promptDetail, promptItem, sendJson, startService } from '../support/service.ts';

/** Most checks are scrapes: more of them take more CPU time than the workers. */
const PATIENCE = { timeout: 100_000, interval: 100 };
const PROJECTS = ['alpha', 'beta', 'gamma'] as const;
/** Families whose values come from the store. */
const OF_THE_STORE =
  /^evalwatch_(?:prompt|dataset|project_(?:up|configured|consecutive)|poll_last_success)/;
const OF_THE_PROCESS = /evalwatch_prompt_state_duration_seconds/;

/** Sets up workers that share a database, and a service with one prompt per project. */
async function setUp({ url }: Pick<TestDatabase, 'url'>, lease = '5s') {
  await using opened = new AsyncDisposableStack();
  const statuses = new Map<string, string>(PROJECTS.map((id) => [id, 'RUNNING']));
  let onListing: (project: string) => Promise<void> = async () => {};
  const service = opened.use(
    await startService(async ({ project }, response) => {
      if (project === undefined) {
        sendJson(response, promptDetail(errorOf('it')));
        return;
      }
      await onListing(project);
      sendJson(response, [promptItem(`of ${project}`, statuses.get(project) ?? 'PENDING')]);
    }),
  );
  const place = opened.use(
    await workspace(service.url, {
      projects: PROJECTS.map((id) => ({ id })),
      store: { postgres_url_file: 'url', lease },
      web: { enable_lifecycle: true },
    }),
  );
  await writeFile(join(place.directory, 'url'), url);
  const held = opened.move();
  return {
    service,
    place,
    start: async () => held.use(await connectPatiently(() => startHere(place, { speed: 1 }))),
    /** Starts a worker as a process of its own, which a test can stop by a signal. */
    startProcess: () => held.use(startDaemon(place)),
    /** Sets what is called before each listing. */
    onListing: (action: typeof onListing) => {
      onListing = action;
    },
    set: (project: string, status: string) => statuses.set(project, status),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

async function ownedBy(daemon: Lines): Promise<readonly string[]> {
  const { samples } = await scrape(await daemon.url());
  return PROJECTS.filter((project) =>
    samples.has(`evalwatch_project_next_poll_timestamp_seconds{project="${project}"}`),
  );
}

function withSeries(samples: ReadonlyMap<string, number>): readonly string[] {
  const labelled = [...samples.keys()].map((series) => /[{,]project="(\w+)"/.exec(series)?.[1]);
  return [...new Set(labelled.filter((project) => project !== undefined))].toSorted();
}

/** Starts two workers that own their shares. */
async function startPair(start: () => Promise<Lines & { stop(): Promise<void> }>) {
  const first = await start();
  await first.line('worker.claimed', { owned: 3 });
  const second = await start();
  await second.line('worker.claimed', { owned: 1 });
  await vi.waitFor(async () => expect((await ownedBy(first)).length).toBe(2), PATIENCE);
  return { first, second };
}

const tests = (open: () => Promise<TestDatabase>) => {
  // First, because it takes longest.
  it('are healthy and scrapable, but not ready, without the database, and recover by themselves', async () => {
    await using own = await startPostgres();
    // The lease outlasts the first scrapes on a slow machine too.
    await using given = await setUp(await own.createDatabase(), '20s');
    const daemon = await given.start();
    await daemon.line('worker.claimed', { owned: 3 });
    const url = await daemon.url();
    const counts = 'evalwatch_prompts{project="alpha",status="RUNNING"}';
    const untilReady = async (status: number) => {
      await vi.waitFor(
        async () => expect((await ask(`${url}/-/ready`)).status).toBe(status),
        PATIENCE,
      );
      expect((await ask(`${url}/-/healthy`)).status).toBe(200);
    };
    const untilCounted = () =>
      vi.waitFor(async () => expect((await scrape(url)).samples.get(counts)).toBe(1), PATIENCE);
    await untilReady(200);
    await untilCounted();

    // A server that is silent.
    const thaw = own.freeze();
    const mute = await Promise.all([scrape(url), scrape(url)]);
    await untilReady(503);
    await vi.waitFor(async () => {
      const { samples } = await scrape(url);
      expect(samples.get('evalwatch_store_commit_failures_total{reason="io"}')).toBeGreaterThan(0);
      // The lease has run out, maybe after the third slow scrape, which counts as a failure.
      expect(samples.get('evalwatch_worker_projects')).toBe(0);
    }, PATIENCE);
    const lost = await scrape(url);
    thaw();
    for (const { samples } of mute) {
      expect(samples.has(counts)).toBe(false);
      expect(samples.get('evalwatch_polls_total{project="alpha"}')).toBeGreaterThan(0);
      expect(samples.get('evalwatch_worker_projects')).toBe(3);
    }
    expect(withSeries(lost.samples)).toEqual([]);
    expect(lost.samples.get('evalwatch_projects_configured')).toBe(3);
    await untilCounted();
    await untilReady(200);

    // A server that is gone.
    await own.kill();
    await untilReady(503);
    const asked = given.service.arrivals.length;
    await own.start();
    await untilReady(200);
    await vi.waitFor(
      () => expect(given.service.arrivals.length).toBeGreaterThan(asked + 2),
      PATIENCE,
    );
    await daemon.stop();
    expect(daemon.of('worker.lease_lost')[0]).toMatchObject({ level: 'error' });
    expect(daemon.of('store.commit_failed')).not.toEqual([]);
    expect(daemon.stdout()).not.toContain(PASSWORD);
    expect(daemon.stdout()).not.toContain(encodeURIComponent(PASSWORD));
  });

  it('divide the projects, export their own, list all and stream the events of all', async () => {
    await using db = await open();
    await using given = await setUp(db);
    const { first, second } = await startPair(given.start);
    const shares = [await ownedBy(first), await ownedBy(second)];
    expect(shares.flat().toSorted()).toEqual(PROJECTS);
    for (const daemon of [first, second]) {
      const url = await daemon.url();
      const owned = await ownedBy(daemon);
      await vi.waitFor(async () => {
        const { samples } = await scrape(url);
        const up = owned.map((id) => samples.get(`evalwatch_project_up{project="${id}"}`));
        expect(up).toEqual(owned.map(() => 1));
      }, PATIENCE);
      const { samples } = await scrape(url);
      expect(withSeries(samples)).toEqual(owned);
      expect(samples.get('evalwatch_worker_projects')).toBe(owned.length);
      expect(samples.get('evalwatch_projects_configured')).toBe(PROJECTS.length);
      for (const project of owned) {
        expect(samples.get(`evalwatch_prompts{project="${project}",status="RUNNING"}`)).toBe(1);
        expect(samples.get(`evalwatch_polls_total{project="${project}"}`)).toBeDefined();
      }
      const { data } = JSON.parse((await ask(`${url}/api/v1/projects`)).text) as {
        data: { project: string; up: boolean; last_poll: string | null }[];
      };
      expect(data.map(({ project, up }) => [project, up])).toEqual(
        PROJECTS.map((id) => [id, true]),
      );
      expect(data.filter(({ last_poll }) => last_poll === null)).toEqual([]);
    }

    const [theirs = ''] = await ownedBy(second);
    const answer = await fetch(`${await first.url()}/api/v1/events?project=${theirs}&type=failure`);
    const events = readEvents(answer.body);
    given.set(theirs, 'FAILED');
    const [event] = await take(events, 1);
    expect(event?.data).toMatchObject({ project: theirs, prompt_id: `of ${theirs}` });
    expect(first.of('prompt.transition')).toEqual([]);
    await events.return();
    // A request does not make a worker poll a project of another one either.
    const { worker } = await second.line('worker.claimed');
    const refused = await fetch(`${await first.url()}/-/poll?project=${theirs}`, {
      method: 'POST',
    });
    expect(refused.status).toBe(409);
    expect(await refused.text()).toContain(`polled by worker ${String(worker)}`);
    const polled = await fetch(`${await first.url()}/-/poll`, { method: 'POST' });
    const rows = ((await polled.json()) as { polled: { project: string }[] }).polled;
    expect(rows.map(({ project }) => project)).not.toContain(theirs);
  });

  it('show a project whose polls cannot be stored as down, whichever worker is asked', async () => {
    await using db = await open();
    await using given = await setUp(db);
    const { first, second } = await startPair(given.start);
    const [theirs = ''] = await ownedBy(second);
    await db.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
         AS 'BEGIN RAISE ''bad block'' USING ERRCODE = ''58030''; END';
       CREATE TRIGGER refuse BEFORE UPDATE ON evalwatch.record FOR EACH ROW
         WHEN (NEW.id = 'of ${theirs}') EXECUTE FUNCTION refuse()`,
    );
    given.set(theirs, 'PENDING');
    for (const daemon of [first, second]) {
      const url = await daemon.url();
      await vi.waitFor(async () => {
        const { data } = JSON.parse((await ask(`${url}/api/v1/projects`)).text) as {
          data: { project: string; up: boolean; reason: string | null }[];
        };
        const down = data.filter(({ up }) => !up);
        expect(down).toMatchObject([{ project: theirs, reason: 'store' }]);
      }, PATIENCE);
      expect((await ask(`${url}/`)).text).toContain('1 of 3 projects not monitored');
    }
    // A failed request is known to the worker that sent it, and everything else to all (docs/scaling.md).
    given.onListing(async () => {
      throw new Error('the service fails');
    });
    await vi.waitFor(async () => {
      const [ours, others] = await Promise.all(
        [first, second].map(async (daemon) => {
          const answer = await ask(`${await daemon.url()}/api/v1/projects`);
          const { data } = JSON.parse(answer.text) as {
            data: { up: boolean; last_error: unknown }[];
          };
          return data.map((row) => ({ ...row, last_error: undefined }));
        }),
      );
      expect(ours).toEqual(others);
      expect(ours?.map(({ up }) => up)).toEqual([false, false, false]);
    }, PATIENCE);
  });

  it('export the same series of the store after a takeover and start their own counters at 0', async () => {
    await using db = await open();
    await using given = await setUp(db);
    // Each project is polled when it is new, and not again.
    await given.place.configure({ schedule: '0 0 1 1 *' });
    const { first, second } = await startPair(given.start);
    const [project = ''] = await ownedBy(second);
    const ofTheStore = async (daemon: Lines) =>
      (await (await fetch(`${await daemon.url()}/metrics`)).text())
        .split('\n')
        .filter((line) => OF_THE_STORE.test(line) && !OF_THE_PROCESS.test(line))
        .filter((line) => line.includes(`project="${project}"`));
    await vi.waitFor(async () => {
      expect(await ofTheStore(second)).toContain(`evalwatch_project_up{project="${project}"} 1`);
    }, PATIENCE);
    const before = await ofTheStore(second);
    expect(before.length).toBeGreaterThan(30);
    expect(await ofTheStore(first)).toEqual([]);
    await second.stop();
    await first.line('worker.claimed', { owned: 3 });
    await vi.waitFor(async () => {
      expect(await ofTheStore(first)).toEqual(before);
    }, PATIENCE);
    const { samples } = await scrape(await first.url());
    expect(samples.get(`evalwatch_polls_total{project="${project}"}`)).toBe(0);
    expect(samples.get('evalwatch_worker_projects')).toBe(3);
  });

  it('poll no project missing from the last loaded configuration until it is configured again', async () => {
    await using db = await open();
    await using given = await setUp(db);
    const first = await given.start();
    await first.line('worker.claimed', { owned: 3 });
    await first.line('project.baseline', { project: 'gamma' });
    await given.place.configure({ projects: [{ id: 'alpha' }, { id: 'beta' }] });
    const second = await given.start();
    await second.url();
    await vi.waitFor(async () => expect(await ownedBy(first)).toEqual(['alpha', 'beta']), PATIENCE);
    const moves = first.of('prompt.transition').length;
    given.set('gamma', 'FAILED');
    given.set('alpha', 'FAILED');
    await first.line('prompt.transition', { project: 'alpha' });
    expect(first.of('prompt.transition').length).toBe(moves + 1);

    await given.place.configure({ projects: PROJECTS.map((id) => ({ id })) });
    await second.reload();
    await vi.waitFor(() => {
      const told = [first, second].flatMap((daemon) => daemon.of('prompt.failed'));
      expect(new Set(told.map(({ project }) => project))).toEqual(new Set(['alpha', 'gamma']));
      expect(told).toHaveLength(2);
    }, PATIENCE);
  });

  it('stop with exit code 0 if the database no longer responds', async () => {
    await using own = await startPostgres();
    await using given = await setUp(await own.createDatabase());
    const daemon = given.startProcess();
    await daemon.line('worker.claimed', { owned: 3 });
    await daemon.line('poll.completed', { project: 'alpha' });
    const thaw = own.freeze();
    const { code, signal } = await daemon.stop();
    thaw();
    expect([code, signal]).toEqual([0, null]);
  });

  it('start and wait for a lease if the database does not answer', async () => {
    await using db = await open();
    await using given = await setUp(db);
    // Creates the tables.
    await db.worker();
    const blocking = await db.begin('LOCK evalwatch.worker IN SHARE MODE');

    const daemon = await given.start();
    await daemon.line('worker.waiting', { level: 'warn', reason: 'io' });
    const url = await daemon.url();
    const readiness = async () => (await ask(`${url}/-/ready`)).status;
    expect(await readiness()).toBe(503);
    expect(daemon.of('worker.claimed')).toEqual([]);

    await blocking.query('ROLLBACK');
    await daemon.line('worker.claimed');
    await vi.waitFor(async () => expect(await readiness()).toBe(200), PATIENCE);
    expect(daemon.of('worker.waiting')).toHaveLength(1);
  });
};

describePostgres('workers that share a store', tests, UNHURRIED);

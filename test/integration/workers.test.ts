import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ask } from '../support/ask.ts';
import { readHere, startHere } from '../support/daemon-here.ts';
import { evalwatch, type Lines, startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { readEvents, take } from '../support/event-stream.ts';
import { startPostgres } from '../support/postgres.ts';
import { PASSWORD, type PostgresServer, postgresPrograms } from '../support/postgres-server.ts';
import { connectPatiently } from '../support/postgres-store.ts';
import { scrape } from '../support/scrape.ts';
import { errorOf, promptDetail, promptItem, sendJson, startService } from '../support/service.ts';

/** Most checks are scrapes: more of them take more CPU time than the workers. */
const PATIENCE = { timeout: 100_000, interval: 100 };
const PROJECTS = ['alpha', 'beta', 'gamma'] as const;
/** Families whose values come from the store. */
const OF_THE_STORE =
  /^evalwatch_(?:prompt|dataset|project_(?:up|configured|consecutive)|poll_last_success)/;
const OF_THE_PROCESS = /evalwatch_prompt_state_duration_seconds/;
const runs = postgresPrograms() !== undefined || process.env['CI'] === 'true';

/** Sets up workers that share a database, and a service with one prompt per project. */
async function setUp(server: PostgresServer, lease = '5s') {
  await using opened = new AsyncDisposableStack();
  const statuses = new Map<string, string>(PROJECTS.map((id) => [id, 'RUNNING']));
  /** Single prompts are answered after it. */
  let gate: Promise<void> | undefined;
  let onListing: (project: string) => Promise<void> = async () => {};
  const service = opened.use(
    await startService(async ({ project }, response) => {
      await (project === undefined ? gate : onListing(project));
      if (project === undefined) sendJson(response, promptDetail(errorOf('it')));
      else sendJson(response, [promptItem(`of ${project}`, statuses.get(project) ?? 'PENDING')]);
    }),
  );
  const { name, url } = await server.createDatabase();
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
    query: (text: string) => server.query(name, text),
    connect: async () => held.adopt(await server.connect(name), (client) => client.end()),
    start: async () => held.use(await connectPatiently(() => startHere(place, { speed: 1 }))),
    /** Starts a worker as a process of its own, which a test can stop by a signal. */
    startProcess: () => held.use(startDaemon(place)),
    holdPrompts: (until: Promise<void> | undefined) => {
      gate = until;
    },
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
async function startPair<Worker extends Lines>(start: () => Worker | Promise<Worker>) {
  const first = await start();
  await first.line('worker.claimed', { owned: 3 });
  const second = await start();
  await second.line('worker.claimed', { owned: 1 });
  await vi.waitFor(async () => expect((await ownedBy(first)).length).toBe(2), PATIENCE);
  return { first, second };
}

/** Starts a pair of which one has requested a failure's error_info; the service answers when `answered` resolves. */
async function startTelling<Worker extends Lines>(
  given: Awaited<ReturnType<typeof setUp>>,
  start: () => Worker | Promise<Worker>,
) {
  const { first, second } = await startPair(start);
  const answered = Promise.withResolvers<void>();
  given.holdPrompts(answered.promise);
  const asked = () => given.service.arrivals.filter(({ project }) => project === undefined);
  const [project = ''] = await ownedBy(first);
  given.set(project, 'FAILED');
  await vi.waitFor(() => expect(asked().length).toBe(1), PATIENCE);
  // Either may have it: the first worker that looks claims the failure.
  const holders = await given.query('SELECT claimed_by FROM evalwatch.failure');
  const isFirst = holders.some(
    ({ claimed_by }) => claimed_by === first.of('worker.claimed')[0]?.['worker'],
  );
  const [teller, other] = isFirst ? [first, second] : [second, first];
  return { teller, other, answered, asked };
}

describe.runIf(runs)('workers that share a store', UNHURRIED, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  // First, because it takes longest.
  it(
    'answer scrapes without the metrics of the store while the database does not respond',
    { timeout: 300_000 },
    async () => {
      await using own = await startPostgres();
      // The lease outlasts the first scrapes on a slow machine too.
      await using given = await setUp(own, '20s');
      const daemon = await given.start();
      await daemon.line('worker.claimed', { owned: 3 });
      const url = await daemon.url();
      const counts = 'evalwatch_prompts{project="alpha",status="RUNNING"}';
      const polls = 'evalwatch_polls_total{project="alpha"}';
      await vi.waitFor(async () => {
        expect((await scrape(url)).samples.get(counts)).toBe(1);
      }, PATIENCE);
      const thaw = own.freeze();
      const mute = await Promise.all([scrape(url), scrape(url)]);
      expect((await ask(`${url}/-/healthy`)).status).toBe(200);
      await vi.waitFor(
        async () => expect((await ask(`${url}/-/ready`)).status).toBe(503),
        PATIENCE,
      );
      await vi.waitFor(async () => {
        const { samples } = await scrape(url);
        expect(samples.get('evalwatch_store_commit_failures_total{reason="io"}')).toBeGreaterThan(
          0,
        );
      }, PATIENCE);
      const lost = await scrape(url);
      thaw();
      for (const { samples } of mute) {
        expect(samples.has(counts)).toBe(false);
        expect(samples.get(polls)).toBeGreaterThan(0);
        expect(samples.get('evalwatch_worker_projects')).toBe(3);
      }
      // Its lease has run out.
      expect(withSeries(lost.samples)).toEqual([]);
      expect(lost.samples.get('evalwatch_worker_projects')).toBe(0);
      expect(lost.samples.get('evalwatch_projects_configured')).toBe(3);
      await daemon.line('store.commit_failed');
      await vi.waitFor(async () => {
        expect((await scrape(url)).samples.get(counts)).toBe(1);
      }, PATIENCE);
      await vi.waitFor(
        async () => expect((await ask(`${url}/-/ready`)).status).toBe(200),
        PATIENCE,
      );
    },
  );

  it('divide the projects, export their own, list all and stream the events of all', async () => {
    await using given = await setUp(server);
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

  it('export the same series of the store after a takeover and start their own counters at 0', async () => {
    await using given = await setUp(server);
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

  it('make the poll command fail for a project that one of them owns and name the owner', async () => {
    await using given = await setUp(server);
    const daemon = await given.start();
    const { worker } = await daemon.line('worker.claimed', { owned: 3 });
    await daemon.line('project.baseline', { project: 'beta' });
    const refused = await vi.waitFor(async () => {
      const command = await readHere(given.place, ['poll', '--project', 'beta']);
      // A slow machine does not always connect in time.
      expect(command.stderr).not.toContain('cannot be reached');
      return command;
    }, PATIENCE);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      `error: project "beta" is polled by daemon ${String(worker)}: stop that daemon first, or let it poll: `,
    );
    // A poll with another configuration takes no projects from their workers either.
    await given.place.configure({ projects: [{ id: 'new' }], log: { level: 'error' } });
    const alone = await readHere(given.place, ['poll', '--json']);
    await given.place.configure({
      projects: PROJECTS.map((id) => ({ id })),
      log: { level: 'info' },
    });
    expect(alone.json().map(({ project, ok }) => [project, ok])).toEqual([['new', true]]);
    const { samples } = await scrape(await daemon.url());
    for (const project of PROJECTS) {
      const series = `evalwatch_project_configured_timestamp_seconds{project="${project}"}`;
      expect(samples.has(series)).toBe(true);
    }
    await daemon.stop();
    given.set('beta', 'FAILED');
    const polled = await evalwatch(given.place, ['poll', '--json']);
    expect(polled.code).toBe(0);
    expect(polled.json().map(({ ok }) => ok)).toEqual([true, true, true]);
    expect(polled.lines().filter(({ event }) => event === 'prompt.failed').length).toBe(1);
  });

  it.each([
    [
      'is taken over',
      'not_owned',
      1,
      `INSERT INTO evalwatch.worker VALUES ('another', now() + interval '5 minutes', '1', '');
       UPDATE evalwatch.project SET owner = 'another', epoch = nextval('evalwatch.epoch')
         WHERE id = 'beta'`,
      /^error: project "beta" was not polled: worker another took it over and polls it now$/m,
    ],
    [
      'is outdated at every attempt to commit it',
      'outdated',
      3,
      `CREATE OR REPLACE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
       CREATE OR REPLACE TRIGGER skip BEFORE UPDATE ON evalwatch.project FOR EACH ROW
         WHEN (NEW.id = 'beta' AND NEW.version > OLD.version) EXECUTE FUNCTION skip()`,
      /^error: project "beta" was not polled: .+ again$/m,
    ],
  ])(
    'make the poll command exit with 1 and report a project that %s while it is polled',
    async (_, reason, tries, change, advice) => {
      await using given = await setUp(server);
      // An undocumented status: if it is never stored, it is not logged either.
      given.set('beta', 'PAUSED');
      given.onListing(async (project) => {
        if (project === 'beta') await given.query(change);
      });
      const rows = await evalwatch(given.place, ['poll', '--json']);
      // Its lease would make the second poll refuse to start.
      await given.query("DELETE FROM evalwatch.worker WHERE worker = 'another'");
      const table = await evalwatch(given.place, ['poll']);
      expect(rows.json()).toMatchObject([
        { project: 'alpha', ok: true, reason: null, prompts: 1 },
        { project: 'beta', ok: false, reason, prompts: null, transitions: 0 },
        { project: 'gamma', ok: true, reason: null, prompts: 1 },
      ]);
      expect(table.stdout).toMatch(new RegExp(`^beta +no +${reason}`, 'm'));
      for (const { code, stderr, lines } of [rows, table]) {
        expect(code).toBe(1);
        expect(lines().filter(({ event }) => event === 'items.anomalous')).toEqual([]);
        expect(stderr).toMatch(advice);
      }
      expect(given.service.of('beta')).toHaveLength(2 * tries);
    },
  );

  it('make the poll command exit with 1, but print its rows, if failures cannot be read', async () => {
    await using given = await setUp(server);
    given.onListing(async () => {
      await given.query(
        'ALTER TABLE IF EXISTS evalwatch.failure RENAME COLUMN next_try_at TO another',
      );
    });
    await given.place.configure({ projects: [{ id: 'beta' }] });
    const { code, stderr, json } = await evalwatch(given.place, ['poll', '--json']);
    expect(json()).toMatchObject([{ project: 'beta', ok: true, prompts: 1 }]);
    expect(stderr).toMatch(/^error: /m);
    expect(code).toBe(1);
  });

  it('log once a minute that one project cannot be stored while others are stored', async () => {
    await using given = await setUp(server);
    const daemon = await given.start();
    await daemon.line('project.baseline', { project: 'beta' });
    await given.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''not beta''; END';
       CREATE TRIGGER refuse BEFORE INSERT ON evalwatch.transition FOR EACH ROW
         WHEN (NEW.record_id = 'of beta') EXECUTE FUNCTION refuse()`,
    );
    given.set('beta', 'FAILED');
    await daemon.line('store.commit_failed');
    // The other projects change all the time and are stored.
    const asked = given.service.of('beta').length;
    given.onListing(async (project) => {
      const isEven = given.service.of(project).length % 2 === 0;
      if (project !== 'beta') given.set(project, isEven ? 'RUNNING' : 'PENDING');
    });
    await vi.waitFor(
      () => expect(given.service.of('beta').length).toBeGreaterThan(asked + 4),
      PATIENCE,
    );
    const { samples } = await scrape(await daemon.url());
    await daemon.stop();
    expect(daemon.of('prompt.transition').length).toBeGreaterThan(4);
    expect(samples.get('evalwatch_store_commit_failures_total{reason="other"}')).toBeGreaterThan(3);
    const [first, ...later] = daemon
      .of('store.commit_failed')
      .filter(({ reason }) => reason === 'other')
      .map(({ time }) => Date.parse(time));
    const minutes = Math.floor((Date.now() - (first ?? NaN)) / 59_000);
    expect(later.length).toBeLessThanOrEqual(minutes);
  });

  it('hand over at a stop without missing or repeating a tick', async () => {
    await using given = await setUp(server);
    await given.place.configure({ schedule: '*/4 * * * * *' });
    const { first, second } = await startPair(given.startProcess);
    const tickOf = (ms: number) => Math.floor(ms / 4000);
    const stoppedIn = tickOf(Date.now());
    await first.stop();
    await second.line('worker.claimed', { owned: 3 });
    expect(first.of('worker.released').at(-1)).toMatchObject({ owned: 0, level: 'info' });
    expect(first.of('worker.lease_lost')).toEqual([]);
    const handedOver = given.service.arrivals.length;
    const polls = (project: string) =>
      given.service.arrivals.slice(handedOver).filter((arrival) => arrival.project === project);
    await vi.waitFor(() => {
      for (const project of PROJECTS) expect(polls(project).length).toBeGreaterThan(1);
    }, PATIENCE);
    const { code } = await second.stop();
    expect(code).toBe(0);
    for (const project of PROJECTS) {
      const ticks = given.service.arrivals
        .filter((arrival) => arrival.project === project)
        .map(({ at }) => tickOf(performance.timeOrigin + at));
      expect(ticks.length - new Set(ticks).size).toBe(0);
      const later = ticks.filter((tick) => tick > stoppedIn);
      expect(later).toEqual(later.map((_, index) => stoppedIn + 1 + index));
    }
  });

  it('poll no project missing from the last loaded configuration until it is configured again', async () => {
    await using given = await setUp(server);
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

  it('do not repeat a poll that is running when a reload removes its project', async () => {
    // A slow machine does not lose this lease.
    await using given = await setUp(server, '60s');
    const worker = await given.start();
    const locks = await given.connect();
    await worker.line('project.baseline', { project: 'alpha' });
    let reload: Promise<unknown> | undefined;
    given.onListing(async (project) => {
      if (project !== 'alpha' || reload !== undefined) return;
      reload = (async () => {
        await given.place.configure({ projects: [{ id: 'beta' }, { id: 'gamma' }] });
        // The worker owns the project until its next renewal, which waits for this.
        await locks.query('BEGIN; LOCK TABLE evalwatch.worker IN EXCLUSIVE MODE');
        return await worker.reload();
      })();
      await reload;
    });
    await vi.waitFor(() => expect(reload).toBeDefined(), PATIENCE);
    expect(await reload).toEqual({ ok: true, reasons: [] });
    // The outcome of the poll arrives meanwhile.
    await setTimeout(500);
    await locks.query('COMMIT');
    await worker.stop();
    expect(worker.of('poll.failed')).toEqual([]);
  });

  it('log a failure once if its error_info is being fetched at a stop', async () => {
    await using given = await setUp(server);
    const { teller, other, answered, asked } = await startTelling(given, given.start);
    const stopped = teller.stop();
    await other.line('worker.claimed', { owned: 3 });
    // The other worker looks for failures every second.
    await setTimeout(2500);
    answered.resolve();
    await stopped;
    expect(teller.of('prompt.failed').length).toBe(1);
    await other.stop();
    expect(other.of('prompt.failed')).toEqual([]);
    expect(asked().length).toBe(1);
  });

  it('do not log a failure after a pause if another worker has taken it over', async () => {
    await using given = await setUp(server);
    const { teller, other, answered, asked } = await startTelling(given, given.startProcess);
    teller.process.kill('SIGSTOP');
    await other.line('worker.claimed', { owned: 3 });
    await vi.waitFor(() => expect(asked().length).toBe(2), PATIENCE);
    answered.resolve();
    await other.line('prompt.failed');
    teller.process.kill('SIGCONT');
    await teller.line('worker.lease_lost');
    await teller.stop();
    expect(teller.of('prompt.failed')).toEqual([]);
    expect(other.of('prompt.failed').length).toBe(1);
  });

  it('stop with exit code 0 if the database no longer responds', async () => {
    await using own = await startPostgres();
    await using given = await setUp(own);
    const daemon = given.startProcess();
    await daemon.line('worker.claimed', { owned: 3 });
    await daemon.line('poll.completed', { project: 'alpha' });
    const thaw = own.freeze();
    const { code, signal } = await daemon.stop();
    thaw();
    expect([code, signal]).toEqual([0, null]);
  });

  it('start and wait for a lease if the database does not answer', async () => {
    await using own = await startPostgres();
    await using given = await setUp(own);
    const first = await given.start();
    await first.line('worker.claimed', { owned: 3 });
    await first.stop();
    const held = given
      .query('BEGIN; LOCK TABLE evalwatch.worker IN SHARE MODE; SELECT pg_sleep(600)')
      .catch(() => 'ended');
    const locks = `SELECT FROM pg_locks WHERE granted AND mode = 'ShareLock'
      AND relation = 'evalwatch.worker'::regclass`;
    await vi.waitFor(async () => expect(await given.query(locks)).toHaveLength(1), PATIENCE);

    const second = await given.start();
    await second.line('worker.waiting', { level: 'warn', reason: 'io' });
    const url = await second.url();
    const readiness = async () => (await ask(`${url}/-/ready`)).status;
    expect(await readiness()).toBe(503);
    expect(second.of('worker.claimed')).toEqual([]);

    await given.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN%'",
    );
    expect(await held).toBe('ended');
    await second.line('worker.claimed', { owned: 3 });
    await vi.waitFor(async () => expect(await readiness()).toBe(200), PATIENCE);
    expect(second.of('worker.waiting')).toHaveLength(1);
    await second.stop();
  });

  it('are not ready, but healthy and scrapable, without the database, and recover by themselves', async () => {
    await using own = await startPostgres();
    await using given = await setUp(own);
    const daemon = await given.start();
    await daemon.line('worker.claimed', { owned: 3 });
    const url = await daemon.url();
    const codes = async () =>
      await Promise.all(
        ['ready', 'healthy'].map(async (path) => (await ask(`${url}/-/${path}`)).status),
      );
    await vi.waitFor(async () => expect(await codes()).toEqual([200, 200]), PATIENCE);
    await own.kill();
    await vi.waitFor(async () => expect(await codes()).toEqual([503, 200]), PATIENCE);
    await daemon.line('worker.lease_lost', { level: 'error' });
    await daemon.line('store.commit_failed');
    const { samples } = await scrape(url);
    expect(samples.get('evalwatch_worker_projects')).toBe(0);
    expect(withSeries(samples)).toEqual([]);
    const asked = given.service.arrivals.length;
    await own.start();
    await vi.waitFor(async () => expect(await codes()).toEqual([200, 200]), PATIENCE);
    await vi.waitFor(
      () => expect(given.service.arrivals.length).toBeGreaterThan(asked + 2),
      PATIENCE,
    );
    await daemon.stop();
    expect(daemon.stdout()).not.toContain(PASSWORD);
    expect(daemon.stdout()).not.toContain(encodeURIComponent(PASSWORD));
  });
});

import { readdir, readFile, readlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Agent, EventSource, fetch, type RequestInit } from 'undici';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/app/clock.ts';
import { limitConcurrency } from '../../src/concurrency/limit-concurrency.ts';
import type { JournalEntry } from '../../src/simulator/world/journal.ts';
import { startSimulator } from '../../src/simulator/server.ts';
import { openStore } from '../../src/store/sqlite/sqlite-store.ts';
import { readHere, startHere } from '../support/daemon-here.ts';
import { startDaemon, workspace, type Workspace } from '../support/evalwatch.ts';
import { ENTRY } from '../support/entry.ts';
import { freePort } from '../support/free-port.ts';
import { readEvents, take } from '../support/event-stream.ts';
import { follow } from '../support/follower.ts';
import { listingOf } from '../support/monitor.ts';
import { differences } from '../support/oracle.ts';
import type { FailureRow, StatusRow, TransitionRow } from '../support/oracle/observation.ts';
import { startAlpha } from '../support/service.ts';
import {
  KEY,
  makeProjects,
  MISSING_AFTER,
  writeConfiguration,
} from '../support/soak/configuration.ts';
import { createLivingWorld } from '../support/soak/living-world.ts';
import { watchDaemons } from '../support/soak/watch.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { detectChanges } from '../support/at-once.ts';

const HEAVY = { timeout: 240_000 };
const LONG = { timeout: 120_000, interval: 100 };
const RARELY = '0 0 1 1 *';
/** Arguments that make a daemon end idle connections after 6 s, not 30. */
const IMPATIENT = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { Server } from 'node:http';
    const { setTimeout } = Server.prototype;
    Server.prototype.setTimeout = function (ms) { return setTimeout.call(this, ms / 5); };`)}`,
  ENTRY,
];

describe('the event stream', HEAVY, () => {
  it('delivers every event once to an EventSource across a killed and restarted daemon', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'PENDING' });
    const listen = `127.0.0.1:${await freePort()}`;
    await using place = await workspace(service.url, { web: { listen } });
    await using first = startDaemon(place);
    await first.line('project.baseline');
    const source = new EventSource(`http://${listen}/api/v1/events?type=transition`);
    onTestFinished(() => source.close());
    const seen: unknown[] = [];
    source.addEventListener('transition', (event) => {
      const { data } = event as unknown as { data: string };
      const { transition_id, to } = JSON.parse(data) as TransitionRow;
      seen.push([transition_id, to]);
    });
    await vi.waitFor(() => expect(source.readyState).toBe(EventSource.OPEN), LONG);
    service.set({ p1: 'RUNNING' });
    await vi.waitFor(() => expect(seen).toHaveLength(1), LONG);

    await first.stop('SIGKILL');
    service.set({ p1: 'FAILED' });
    await using second = await startHere(place);
    await second.line('prompt.failed');
    service.set({ p1: 'RUNNING' });
    await vi.waitFor(() => expect(seen).toHaveLength(3), LONG);

    expect(seen).toEqual([
      [1, 'RUNNING'],
      [2, 'FAILED'],
      [3, 'RUNNING'],
    ]);
  });

  it('serves 500 clients, answers 503 to more, frees disconnected ones and ends all at a stop', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'PENDING' });
    await using place = await workspace(service.url);
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    const url = await daemon.url();
    // A request that takes more than 10 s to arrive gets a 408, which happens on a busy machine.
    const ask = (path: string, init: RequestInit = {}) =>
      vi.waitFor(async () => {
        const answer = await fetch(url + path, init);
        expect(answer.status).not.toBe(408);
        return answer;
      }, LONG);
    let opened = 0;
    const open = (init: RequestInit = {}) => {
      // One address may have 100 connections.
      const dispatcher = new Agent({ localAddress: `127.0.1.${opened % 10}` });
      opened += 1;
      return ask('/api/v1/events?type=transition', { ...init, dispatcher });
    };
    const all = Array.from({ length: 500 }, () => new AbortController());
    // Together they can take more than 30 s on a slow machine, and the server ends connections that are idle that long.
    const inGroups = limitConcurrency(25);
    const gone = await Promise.all(all.map(({ signal }) => inGroups(() => open({ signal }))));
    expect(new Set(gone.map(({ status }) => status))).toEqual(new Set([200]));
    const early = await open();
    for (const each of all) each.abort();
    const openAtLast = () =>
      vi.waitFor(async () => {
        const answer = await open();
        expect(answer.status).toBe(200);
        return answer;
      }, LONG);
    const answers = await Promise.all(all.map(() => inGroups(openAtLast)));
    const streams = answers.map(({ body }) => readEvents(body));
    const firsts = streams.map((events) => take(events, 1));

    const tooMany = await open();
    const others = await Promise.all(
      ['/metrics', '/api/v1/transitions', '/-/healthy'].map((path) => ask(path)),
    );
    service.set({ p1: 'RUNNING' });
    const received = (await Promise.all(firsts)).map(([event]) => event?.data['to']);

    expect([early.status, tooMany.status]).toEqual([503, 503]);
    expect(await tooMany.json()).toHaveProperty('error');
    expect(others.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(received)).toEqual(new Set(['RUNNING']));

    const ends = streams.map((events) => events.next().catch(() => ({ done: true })));
    await daemon.stop();
    expect((await Promise.all(ends)).every(({ done }) => done)).toBe(true);
  });

  // Concurrent: these mostly wait.
  it.concurrent(
    'delivers every event exactly once over 5 broken connections and a killed daemon',
    async () => {
      await using directory = await temporaryDirectory();
      await using opened = new AsyncDisposableStack();
      const projects = makeProjects(4);
      const living = createLivingWorld(
        projects.map(({ id }) => id),
        11,
      );
      const journal: JournalEntry[] = [];
      const simulator = await startSimulator({
        world: living.world,
        keys: KEY,
        journal: (entry) => journal.push(entry),
      });
      opened.defer(() => simulator.close());
      const config = await writeConfiguration(directory.path, simulator.url, projects);
      const watch = opened.use(watchDaemons(config, {}));
      const urlNow = () => watch.lives.at(-1)?.url();
      const follower = opened.use(follow(urlNow));
      opened.defer(() => living.stop());
      living.start();
      watch.start();
      for (let n = 0; n < 6; n += 1) {
        const { length } = follower.received;
        await vi.waitFor(() => expect(follower.received.length).toBeGreaterThan(length + 10), LONG);
        if (n === 3) {
          await watch.kill();
          watch.start();
        } else follower.breakOff();
      }
      living.stop();

      const rowsOf = (type: string) =>
        follower.received.filter((event) => event.type === type).map(({ data }) => data);
      const rowsIn = async (command: string) =>
        (await readHere({ config }, [command, '--json'])).json() as readonly unknown[];
      // No status changes any more, so every recorded event arrives in the end.
      await vi.waitFor(() => {
        const { finishedAt = 0 } = journal.at(-1) ?? {};
        const lastMove = Math.max(
          0,
          ...rowsOf('transition').map((row) => Date.parse(String(row['time']))),
        );
        expect(finishedAt - lastMove).toBeGreaterThan(4000);
      }, LONG);
      await vi.waitFor(
        async () => {
          const transitions = await rowsIn('transitions');
          expect(rowsOf('transition')).toEqual(transitions.toReversed());
          const failures = (await rowsIn('failures')) as readonly FailureRow[];
          const settled = failures.filter((row) => row.settled);
          expect(rowsOf('failure').toSorted(byTransition)).toEqual(settled.toSorted(byTransition));
        },
        { ...LONG, interval: 500 },
      );
      await watch.end();
      const statuses = (await rowsIn('status')) as readonly StatusRow[];
      const rows = (await rowsIn('failures')) as readonly FailureRow[];
      // Failures of prompts that were run again in time wait for their last try.
      const pending = rows.filter((row) => !row.settled);
      const failures = [...(rowsOf('failure') as unknown as readonly FailureRow[]), ...pending];

      expect(follower.connections).toBeGreaterThanOrEqual(7);
      expect(rowsOf('reset')).toEqual([]);
      expect(
        differences({
          journal,
          key: KEY,
          missingAfter: MISSING_AFTER,
          projects,
          runs: watch.lives.map(({ run }) => run),
          transitions: rowsOf('transition').toReversed() as unknown as readonly TransitionRow[],
          failures: failures.toSorted(byTransition).toReversed(),
          statuses,
          samples: watch.lives.at(-1)?.samples ?? new Map(),
          gave: living.gave,
        }),
      ).toEqual([]);
    },
  );

  it.concurrent(
    'disconnects a client that does not read, which can resume without loss',
    { timeout: 300_000 },
    async () => {
      // With their long ids, more than the buffers of the sockets hold.
      const count = 8_000;
      await using service = await startAlpha();
      await using place = await workspace(service.url, { schedule: RARELY });
      await fillStore(place, count);
      await using daemon = startDaemon(place, { args: IMPATIENT });
      const url = new URL(await daemon.url());
      const before = await socketsOf(daemon.process.pid);
      const slow = connect(Number(url.port), url.hostname);
      slow.write('GET /api/v1/events?after=t0.f0 HTTP/1.1\r\nhost: x\r\n\r\n');
      slow.pause();

      // Another client reads all events meanwhile.
      const readAfter = async (id: string, howMany: number) => {
        const answer = await fetch(`${url.origin}/api/v1/events?after=${id}`);
        const stream = readEvents(answer.body);
        const events = await take(stream, howMany);
        await stream.return();
        return events.map(({ data }) => data['transition_id']);
      };
      const all = await readAfter('t0.f0', count);
      expect(all).toEqual(Array.from({ length: count }, (_, n) => n + 1));
      expect(await rssMiB(daemon.process.pid)).toBeLessThan(400);

      await vi.waitFor(
        async () => expect(await socketsOf(daemon.process.pid)).toBeLessThanOrEqual(before),
        { timeout: 180_000, interval: 100 },
      );
      const read = await text(slow.on('error', () => {})).catch(() => '');
      const ids = [...read.matchAll(/^id: (t\d+\.f0)\n(?=data: .*\n\n)/gm)].map(
        ([, id]) => id ?? '',
      );
      expect(ids.length).toBeLessThan(count);

      const rest = await readAfter(ids.at(-1) ?? 't0.f0', count - ids.length);
      expect([rest[0], rest.at(-1)]).toEqual([ids.length + 1, count]);
    },
  );
});

function byTransition(a: object, b: object): number {
  const id = (row: object) => (row as TransitionRow).transition_id;
  return id(a) - id(b);
}

/** Stores `count` transitions of the project alpha in one commit. */
async function fillStore(place: Workspace, count: number): Promise<void> {
  const path = join(place.directory, 'evalwatch.db');
  const store = await openStore({ path, clock: systemClock, emit: () => {} });
  const at = systemClock.now();
  const health = {
    up: true,
    consecutiveFailures: 0,
    reason: undefined,
    lastPollAt: at,
    lastSuccessAt: at,
  };
  await store.configureProjects(['alpha'], at);
  for (const status of ['PENDING', 'RUNNING']) {
    const statuses = Object.fromEntries(
      Array.from({ length: count }, (_, n) => [`p${n}`.padEnd(500, '-'), status]),
    );
    const { version, listings } = await store.loadKnown('alpha', ['prompt']);
    const known = listings.get('prompt') ?? { baselined: false, records: new Map() };
    const changes = detectChanges(known, listingOf(statuses), { at, missingAfter: 3 });
    const prompts = new Map([['prompt' as const, changes]]);
    await store.commitPoll({ project: 'alpha', at, health, version, listings: prompts });
  }
  await store.close();
}

async function socketsOf(pid: number | undefined): Promise<number> {
  const directory = `/proc/${pid}/fd`;
  const links = await Promise.all(
    (await readdir(directory)).map((fd) => readlink(join(directory, fd)).catch(() => '')),
  );
  return links.filter((link) => link.startsWith('socket:')).length;
}

/** Returns the peak. */
async function rssMiB(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

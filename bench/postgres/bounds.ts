/** Measures the PostgreSQL engine on its own server and prints each figure beside its bound: `npm run bench:postgres`. */
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '../../src/app/clock.ts';
import { openPostgres } from '../../src/store/postgres/postgres-store.ts';
import { startPostgres } from '../../test/support/postgres.ts';
import { median } from '../statistics.ts';
import { report, reportPolls, serverCounters } from './figures.ts';
import { cpuMsOf } from './server-cpu.ts';
import { SETTINGS } from './settings.ts';
import { createWorkload } from './workload.ts';

const PROJECTS = 10_000;
const PROMPTS = 100;
/** Each project is polled every 30 s, and every fifth poll finds one change. */
const POLLS_A_SECOND = Math.round(PROJECTS / 30);
const CHANGES_ONE_IN = 5;
/** Time between two checkpoints, in which each page is logged whole once. */
const SECONDS = 300;

await using server = await startPostgres({ fsync: true, settings: SETTINGS });
const database = await server.createDatabase();
const worker = randomUUID();
const { store, coordinator } = await openPostgres({
  url: database.url,
  worker,
  leaseMs: 300_000,
  clock: systemClock,
  emit: () => undefined,
  signal: new AbortController().signal,
});
const work = createWorkload(store);
const all = Array.from({ length: PROJECTS }, (_, index) => `project-${index}`);
await coordinator.join({ id: worker, version: 'bench', configDigest: '' });
await store.configureProjects(all, Date.now());
for (const { project, epoch } of await coordinator.claim(worker, all, PROJECTS)) {
  store.own(project, epoch);
}

const [small = '', large = '', ...others] = all;
await work.baseline(small, 100);
await work.baseline(large, 10_000);
await server.query(database.name, 'ANALYZE');
// A scrape calls this too. It finds that the tables are analysed, so plans are kept from now on.
await store.size();
await measure('commit, 1 of 100 prompts changed', 1, 200, () => work.change(small, 1));
await measure('commit, 100 of 10,000 changed', 5, 60, () => work.change(large, 100));
const cold = others.splice(0, 5).values();
await measure('commit, 10,000 prompts for the first time', 150, 5, () =>
  work.baseline(cold.next().value ?? '', 10_000),
);

for (const project of others) await work.baseline(project, PROMPTS);
await server.query(database.name, 'VACUUM ANALYZE');
await server.query(database.name, 'CHECKPOINT');
await measure('scrape of 10,000 projects, reading', 100, 9, async () => {
  const started = performance.now();
  await store.snapshot();
  return performance.now() - started;
});

const before = await counters();
for (let poll = 0; poll < SECONDS * POLLS_A_SECOND; poll += 1) {
  const project = others[poll % others.length] ?? '';
  if (poll % CHANGES_ONE_IN === 0) await work.change(project, 1);
  else await work.unchanged(project);
  // The loop is faster than real time, so it flushes after the polls of each second.
  if (poll % POLLS_A_SECOND === POLLS_A_SECOND - 1) await store.flush();
}
const after = await counters();
await coordinator.leave(worker);
await store.close();
const polls = SECONDS * POLLS_A_SECOND;
reportPolls(before, after, polls, true);

async function measure(
  what: string,
  most: number,
  runs: number,
  run: () => Promise<number>,
): Promise<void> {
  const cpu = cpuMsOf(server.pid());
  const taken: number[] = [];
  while (taken.length < runs) taken.push(await run());
  report(what, 'ms', median(taken), { most });
  report('  of it CPU of PostgreSQL', 'ms', (cpuMsOf(server.pid()) - cpu) / runs);
}

async function counters() {
  // The statistics of the server are up to a second late.
  await setTimeout(2000);
  return await serverCounters(server, database.name);
}

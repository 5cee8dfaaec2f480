import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { COMPILE_CACHE } from '../../test/support/compile-cache.ts';
import type { LogLine } from '../../test/support/oracle/observation.ts';
import { startSimulator } from '../../src/simulator/server.ts';
import { World } from '../../src/simulator/world/world.ts';
import { KEY, writeConfiguration } from '../../test/support/soak/configuration.ts';
import { scrape, type Scrape } from '../../test/support/scrape.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';

const FASTER = new URL('faster.ts', import.meta.url).href;
const MINUTE = 60 * 1000;
const HOUR = 60 * MINUTE;
const PATIENCE_MS = 120_000;

/** Runs a daemon at a multiple of real time, suspends it by SIGSTOP and sets its clock. Returns what it observed. */
export async function watchFastDaemon(
  source: string,
  speed: number,
): Promise<{
  readonly stop: string;
  readonly polls: number;
  readonly failureLines: number;
  readonly faults: readonly string[];
}> {
  await using directory = await temporaryDirectory();
  await using opened = new AsyncDisposableStack();
  const world = new World({ now: () => Date.now(), seed: 1, projects: ['alpha'] });
  const simulator = await startSimulator({ world, keys: KEY });
  opened.defer(() => simulator.close());
  const config = await writeConfiguration(
    directory.path,
    simulator.url,
    [{ id: 'alpha', datasets: false }],
    { schedule: '0 * * * * *', timeout: '5m' },
  );
  const child = spawn(
    process.execPath,
    ['--import', FASTER, join(source, 'main.js'), 'run', '--config', config],
    {
      env: { PATH: process.env['PATH'], ...COMPILE_CACHE, FASTER: String(speed) },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    },
  );
  opened.defer(() => void child.kill('SIGKILL'));
  const lines: LogLine[] = [];
  createInterface(child.stdout as NodeJS.ReadableStream).on('line', (line) => {
    lines.push(JSON.parse(line) as LogLine);
  });
  const faults: string[] = [];

  const of = (event: string) => lines.filter((line) => line.event === event);
  async function until(what: string, condition: () => boolean): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!condition()) {
      if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode} before ${what}`);
      if (performance.now() > deadline) throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
      await setTimeout(2);
    }
  }
  async function polls(more: number): Promise<void> {
    const before = of('poll.completed').length;
    await until(`${more} polls`, () => of('poll.completed').length >= before + more);
  }
  async function look() {
    const seen = await scrapePatiently(url);
    const negative = [...seen.samples].filter(
      ([name, sample]) => sample < 0 && name.startsWith('evalwatch_'),
    );
    if (negative.length > 0) faults.push(`negative: ${negative.join(' ')}`);
    const sum = (name: string) => seen.value(name, { project: 'alpha' }) ?? NaN;
    return {
      polls: sum('evalwatch_polls_total'),
      missed: sum('evalwatch_scheduler_missed_runs_total'),
    };
  }
  async function jump(ms: number): Promise<void> {
    const answer = once(child, 'message');
    child.send(ms);
    await answer;
  }
  let failures = 0;
  async function fail(): Promise<void> {
    world.addPrompt('alpha', { id: `failing-${failures}`, status: 'FAILED' });
    failures += 1;
    await until('the line of a failure', () => of('prompt.failed').length === failures);
  }

  await until('a start', () => of('daemon.started').length > 0);
  const url = String((of('daemon.started')[0] as { url?: unknown } | undefined)?.url);
  await polls(3);
  const before = await look();
  child.kill('SIGSTOP');
  await setTimeout((10 * MINUTE) / speed);
  child.kill('SIGCONT');
  const polledBefore = of('poll.completed').length;
  await polls(3);
  const after = await look();
  const minutes = after.polls - before.polls + after.missed - before.missed;
  if (after.missed - before.missed < 8) faults.push('a stop of 10 minutes without missed runs');
  const ends = of('poll.completed')
    .slice(polledBefore)
    .map(({ time }) => Date.parse(time));
  if (ends.filter((end) => end < (ends[0] ?? 0) + MINUTE).length > 2) {
    faults.push('a burst after the stop');
  }
  for (const ms of [HOUR, -HOUR, 365 * 24 * HOUR, -365 * 24 * HOUR]) {
    await jump(ms);
    await polls(2);
    await fail();
  }
  const end = await look();
  const durations = lines.map((line) => (line as { duration_ms?: number }).duration_ms ?? 0);
  if (durations.some((ms) => ms < 0)) faults.push('a negative duration_ms');
  child.kill('SIGTERM');
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) faults.push(`ended with ${code}`);
  return {
    stop: `${after.polls - before.polls} polls and ${after.missed - before.missed} missed in ${minutes} minutes`,
    polls: end.polls,
    failureLines: failures,
    faults,
  };
}

/**
 * Scrapes until it succeeds: the daemon cuts off a client that has not read its response within 15 s, which is 0.15 to 0.25
 * s here.
 */
async function scrapePatiently(url: string): Promise<Scrape> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await scrape(url);
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await setTimeout(5);
    }
  }
}

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, expect, it, vi } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import { PATIENCE, sleep, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { sendJson, startService, type Arrival } from '../support/service.ts';

/** How much later than it was sent a request may arrive here while this process is on time, ms. */
const TRANSIT_MS = 100;

function projects(count: number): readonly object[] {
  return Array.from({ length: count }, (_, index) => ({ id: `project-${index}` }));
}

/** The most arrivals within any `ms`. */
function mostWithin(ms: number, arrivals: readonly Arrival[]): number {
  const times = arrivals.map(({ at }) => at).toSorted((a, b) => a - b);
  return Math.max(
    0,
    ...times.map((start, index) => times.slice(index).filter((at) => at < start + ms).length),
  );
}

interface Seen {
  readonly arrivals: readonly Arrival[];
  readonly maxInFlight: number;
  /** How much later than it was sent a request may have been seen, ms. */
  readonly error: number;
}

/** What arrives in so many ms from the first request on. */
async function arrivalsOf(ms: number, count: number, limits: object, answerMs = 0): Promise<Seen> {
  const lateness = monitorEventLoopDelay({ resolution: 10 });
  await using service = await startService(async (_, response) => {
    await sleep(answerMs);
    sendJson(response, []);
  });
  await using place = await workspace(service.url, { service: limits, projects: projects(count) });
  await using daemon = await startHere(place);
  lateness.enable();
  await vi.waitFor(() => expect(service.arrivals).not.toEqual([]), PATIENCE);
  await sleep(ms);
  await daemon.stop();
  lateness.disable();
  const { arrivals, maxInFlight } = service;
  return { arrivals, maxInFlight, error: TRANSIT_MS + lateness.max / 1e6 };
}

describe('max_requests_per_second', UNHURRIED, () => {
  it('is never exceeded by many projects of one schedule, and used', async () => {
    const { arrivals, error } = await arrivalsOf(4000, 400, { max_requests_per_second: 50 });
    expect(mostWithin(1000 - error, arrivals)).toBeLessThanOrEqual(50);
    expect(arrivals.length).toBeLessThanOrEqual(50 * 5);
    expect(arrivals.length).toBeGreaterThan(50 * 2);
  });
});

describe('max_concurrency', UNHURRIED, () => {
  it('of 2 is never exceeded by 10 projects, and used', async () => {
    const { maxInFlight, arrivals } = await arrivalsOf(2000, 10, { max_concurrency: 2 }, 100);
    expect(maxInFlight).toBe(2);
    expect(arrivals.length).toBeGreaterThan(10);
  });
});

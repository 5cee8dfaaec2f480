import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, expect, it, vi } from 'vitest';
import { PATIENCE, sleep, startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
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
  await using daemon = startDaemon(place);
  lateness.enable();
  await vi.waitFor(() => expect(service.arrivals).not.toEqual([]), PATIENCE);
  await sleep(ms);
  await daemon.stop();
  lateness.disable();
  const { arrivals, maxInFlight } = service;
  return { arrivals, maxInFlight, error: TRANSIT_MS + lateness.max / 1e6 };
}

describe('max_requests_per_second', UNHURRIED, () => {
  it('of 3 is never exceeded by 10 projects, and used', async () => {
    const { arrivals, error } = await arrivalsOf(6000, 10, { max_requests_per_second: 3 });
    expect(mostWithin(1000 - error, arrivals)).toBeLessThanOrEqual(3);
    expect(arrivals.length).toBeLessThanOrEqual(3 * 7);
    expect(arrivals.length).toBeGreaterThan(3 * 4);
  });

  it('may be a fraction', async () => {
    const { arrivals, error } = await arrivalsOf(6500, 3, { max_requests_per_second: 0.5 });
    expect(mostWithin(2000 - error, arrivals)).toBeLessThanOrEqual(1);
    expect(arrivals.length).toBeGreaterThanOrEqual(3);
    expect(arrivals.length).toBeLessThanOrEqual(4);
  });

  it('lets 1,000 projects of one schedule not come as one burst', async () => {
    const { arrivals, error } = await arrivalsOf(5000, 1000, { max_requests_per_second: 50 });
    expect(mostWithin(1000 - error, arrivals)).toBeLessThanOrEqual(50);
    expect(arrivals.length).toBeLessThanOrEqual(50 * 6);
    expect(arrivals.length).toBeGreaterThan(50 * 3);
  });
});

describe('max_concurrency', UNHURRIED, () => {
  it('of 2 is never exceeded by 10 projects, and used', async () => {
    const { maxInFlight, arrivals } = await arrivalsOf(3000, 10, { max_concurrency: 2 }, 100);
    expect(maxInFlight).toBe(2);
    expect(arrivals.length).toBeGreaterThan(10);
  });
});

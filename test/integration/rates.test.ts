import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, expect, it, vi } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import { PATIENCE, sleep, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { sendJson, startService, type Arrival } from '../support/service.ts';

/** Maximum time between the sending and the arrival of a request while this process is on time, ms. */
const TRANSIT_MS = 100;
/** Turns of the event loop until a request arrives: accept the connection, read it, handle the request. */
const TURNS = 3;

function projects(count: number): readonly object[] {
  return Array.from({ length: count }, (_, index) => ({ id: `project-${index}` }));
}

/** Maximum number of arrivals within any `ms`. */
function mostWithin(ms: number, arrivals: readonly Arrival[]): number {
  const times = arrivals.map(({ at }) => at).toSorted((a, b) => a - b);
  return Math.max(
    0,
    ...times.map((start, index) => times.slice(index).filter((at) => at < start + ms).length),
  );
}

interface Seen {
  /** Arrivals whose delay is known. Earlier ones can have waited for the daemon to start in this process. */
  readonly measured: readonly Arrival[];
  readonly maxInFlight: number;
  /** Maximum time between the sending and the arrival of a request, ms. */
  readonly error: number;
}

/** Polls `count` projects until more than `atLeast` arrivals are measured. */
async function arrivalsOf(
  atLeast: number,
  count: number,
  limits: object,
  answerMs = 0,
): Promise<Seen> {
  const lateness = monitorEventLoopDelay({ resolution: 10 });
  await using service = await startService(async (_, response) => {
    await sleep(answerMs);
    sendJson(response, []);
  });
  await using place = await workspace(service.url, { service: limits, projects: projects(count) });
  await using daemon = await startHere(place);
  lateness.enable();
  const measuredFrom = performance.now() + TRANSIT_MS;
  const measured = () => service.arrivals.filter(({ at }) => at >= measuredFrom);
  await vi.waitFor(() => expect(measured().length).toBeGreaterThan(atLeast), PATIENCE);
  await daemon.stop();
  lateness.disable();
  const { maxInFlight } = service;
  return { measured: measured(), maxInFlight, error: TRANSIT_MS + (TURNS * lateness.max) / 1e6 };
}

describe('max_requests_per_second', UNHURRIED, () => {
  it('is not exceeded by 400 projects with the same schedule', async () => {
    const { measured, error } = await arrivalsOf(150, 400, { max_requests_per_second: 50 });
    expect(mostWithin(1000 - error, measured)).toBeLessThanOrEqual(50);
    const [first, last] = [measured.at(0)?.at ?? 0, measured.at(-1)?.at ?? 0];
    expect(measured.length).toBeLessThanOrEqual(50 * (1 + (last - first + error) / 1000));
  });
});

describe('max_concurrency', UNHURRIED, () => {
  it('set to 2 allows exactly 2 concurrent requests for 10 projects', async () => {
    const { maxInFlight } = await arrivalsOf(8, 10, { max_concurrency: 2 }, 100);
    expect(maxInFlight).toBe(2);
  });
});

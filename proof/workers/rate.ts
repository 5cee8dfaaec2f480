import { setTimeout } from 'node:timers/promises';
import { answerTheDead } from '../../test/support/soak/disturbance.ts';
import type { Figures } from '../row.ts';
import { createScene } from './scene.ts';

const PER_SECOND = 30;
const WINDOW_MS = 10_000;
/** Tolerance for the requests that the service counts. */
const TOLERANCE = 1.05;
/** More projects than the rate allows. */
const PROJECTS = 60;

/**
 * Measures the maximum number of requests in any 10 s. Workers want to send more than the rate allows, while others join,
 * leave, are killed, stop and wake up.
 */
export async function measureRate(seconds: number, seed: number): Promise<Figures> {
  await using scene = await createScene({
    seed,
    source: undefined,
    projects: PROJECTS,
    every: 1,
    lease: '5s',
    maxRequestsPerSecond: PER_SECOND,
  });
  const { crew } = scene;
  await Promise.all([crew.join(), crew.join()]);
  const from = Date.now();
  const end = performance.now() + seconds * 1000;
  const moment = () => setTimeout(seconds * 80);
  while (performance.now() < end) {
    await crew.join();
    await moment();
    const [first, second] = crew.members;
    if (first !== undefined) await crew.kill(first);
    await answerTheDead();
    await moment();
    const wake = second && crew.stop(second);
    await crew.join();
    await moment();
    wake?.();
    await moment();
    const last = crew.members.at(-1);
    if (last !== undefined) await crew.leave(last);
  }
  const times = scene.requests.map(({ at }) => at).filter((at) => at >= from);
  const most = mostWithin(times, WINDOW_MS);
  const bound = (PER_SECOND * WINDOW_MS * TOLERANCE) / 1000;
  const took = (Date.now() - from) / 1000;
  const perSecond = times.length / took;
  if (most > bound) throw new Error(`${most} requests within 10 s, at a rate of ${PER_SECOND}`);
  if (perSecond < PER_SECOND / 2) throw new Error(`only ${perSecond.toFixed(1)} requests a second`);
  if (crew.differences.length > 0) throw new Error(crew.differences.join('\n'));
  return [
    [
      `requests at ${PER_SECOND} a second`,
      `${most} within any 10 s (bound ${bound}), ${perSecond.toFixed(1)} a second, through joins, kills and stops`,
    ],
  ];
}

function mostWithin(times: readonly number[], ms: number): number {
  let from = 0;
  let most = 0;
  for (const [index, at] of times.entries()) {
    while ((times[from] ?? at) <= at - ms) from += 1;
    most = Math.max(most, index - from + 1);
  }
  return most;
}

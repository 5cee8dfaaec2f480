import { expect, it } from 'vitest';
import type { Steps } from '../../../src/domain/steps.ts';
import { BYTES_PER_TURN, steps, takeSteps } from '../../../src/monitor/steps.ts';

/** Records each step with the turn of the event loop in which it was taken. */
function setUp() {
  const taken: string[] = [];
  const turns = new Map<string, number>();
  let turn = 0;
  const count = () => {
    turn += 1;
    if (turn < 20) setImmediate(count);
  };
  setImmediate(count);
  function* work(name: string, last: number): Steps<string> {
    for (let step = 1; step <= last; step += 1) {
      taken.push(`${name}${step}`);
      turns.set(`${name}${step}`, turn);
      if (step < last) yield;
    }
    return name;
  }
  return { taken, turns, work };
}

it('takeSteps takes the first step at once, then alternates with other work, one step per turn', async () => {
  const { taken, turns, work } = setUp();
  const all = [takeSteps(work('a', 3)), takeSteps(work('b', 3))];
  expect(taken).toEqual(['a1', 'b1']);
  expect(await Promise.all(all)).toEqual(['a', 'b']);
  expect(taken).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
  const later = taken.slice(3).map((step) => turns.get(step));
  expect(new Set(later).size).toBe(later.length);
});

it('takeSteps goes before the parsing of listings', async () => {
  const { taken, work } = setUp();
  const parsing = ['p1', 'p2', 'p3'].map((name) =>
    steps.run(1, BYTES_PER_TURN, () => void taken.push(name)),
  );
  await Promise.all([...parsing, takeSteps(work('a', 3))]);
  expect(taken.indexOf('a3')).toBeLessThan(taken.indexOf('p3'));
});

it('takeSteps rejects when the signal aborts between two steps', async () => {
  const { taken, work } = setUp();
  const aborted = new AbortController();
  const taking = takeSteps(work('a', 3), aborted.signal);
  aborted.abort(new Error('over'));
  await expect(taking).rejects.toThrow('over');
  expect(taken).toEqual(['a1']);
});

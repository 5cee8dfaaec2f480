import { expect, it } from 'vitest';
import { createStepQueue } from '../../../src/monitor/step-queue.ts';
import type { Steps } from '../../../src/domain/steps.ts';

const nextTurn = () => new Promise((resolve) => void setImmediate(resolve));

/** Creates work of `steps` steps that records each of them. */
function setUp() {
  const taken: string[] = [];
  function* work(name: string, steps: number): Steps<void> {
    for (let step = 1; step <= steps; step += 1) {
      taken.push(`${name}${step}`);
      if (step < steps) yield;
    }
  }
  return { taken, work };
}

it('the step queue takes steps up to the budget of a turn, and continues in the next one', async () => {
  const { taken, work } = setUp();
  const queue = createStepQueue(100);
  const done = queue.run(1, 60, work('a', 5));
  expect(taken).toEqual(['a1', 'a2']);
  await nextTurn();
  expect(taken).toEqual(['a1', 'a2', 'a3', 'a4']);
  await done;
  expect(taken).toHaveLength(5);
});

it('the step queue takes a step that is larger than the budget alone', async () => {
  const { taken, work } = setUp();
  const queue = createStepQueue(100);
  const done = queue.run(1, 1000, work('a', 2));
  expect(taken).toEqual(['a1']);
  await done;
});

it('the step queue takes the lowest rank first, and work of one rank in order', async () => {
  const { taken, work } = setUp();
  const queue = createStepQueue(100);
  await Promise.all([
    queue.run(2, 100, work('a', 2)),
    queue.run(2, 100, work('b', 1)),
    queue.run(1, 100, work('c', 2)),
    queue.run(3, 100, work('d', 1)),
  ]);
  expect(taken).toEqual(['a1', 'c1', 'c2', 'a2', 'b1', 'd1']);
});

it('the step queue rejects work that throws, and continues with other work', async () => {
  const { taken, work } = setUp();
  const queue = createStepQueue(1);
  function* broken(): Steps<void> {
    yield;
    throw new Error('broken');
  }
  const failing = queue.run(1, 1, broken());
  const other = queue.run(2, 1, work('a', 1));
  await expect(failing).rejects.toThrow('broken');
  await other;
  expect(taken).toEqual(['a1']);
});

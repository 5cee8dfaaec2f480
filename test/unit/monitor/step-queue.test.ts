import { expect, it } from 'vitest';
import { createStepQueue } from '../../../src/monitor/step-queue.ts';

const nextTurn = () => new Promise((resolve) => void setImmediate(resolve));

/** Creates steps that record their names. */
function setUp() {
  const taken: string[] = [];
  return { taken, step: (name: string) => () => void taken.push(name) };
}

it('the step queue takes steps up to the budget of a turn, and continues in the next one', async () => {
  const { taken, step } = setUp();
  const queue = createStepQueue(100);
  const done = Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => queue.run(1, 60, step(name))));
  expect(taken).toEqual(['a', 'b']);
  await nextTurn();
  expect(taken).toEqual(['a', 'b', 'c', 'd']);
  await done;
  expect(taken).toHaveLength(5);
});

it('the step queue takes a step that is larger than the budget alone', async () => {
  const { taken, step } = setUp();
  const queue = createStepQueue(100);
  const done = Promise.all([queue.run(1, 1000, step('a')), queue.run(1, 1000, step('b'))]);
  expect(taken).toEqual(['a']);
  await done;
  expect(taken).toEqual(['a', 'b']);
});

it('the step queue takes the lowest rank first, and steps of one rank in order', async () => {
  const { taken, step } = setUp();
  const queue = createStepQueue(100);
  await Promise.all([
    queue.run(2, 100, step('a')),
    queue.run(2, 100, step('b')),
    queue.run(3, 100, step('d')),
    queue.run(1, 100, step('c')),
    queue.run(2, 100, step('e')),
  ]);
  expect(taken).toEqual(['a', 'c', 'b', 'e', 'd']);
});

it('the step queue rejects for a step that throws, and continues with others', async () => {
  const { taken, step } = setUp();
  const queue = createStepQueue(1);
  const failing = queue.run(1, 1, () => {
    throw new Error('broken');
  });
  const other = queue.run(2, 1, step('a'));
  await expect(failing).rejects.toThrow('broken');
  await other;
  expect(taken).toEqual(['a']);
});

import { expect, it } from 'vitest';
import { listingBodies } from '../../../bench/workload.ts';

const PROMPTS = 300;
const versions = [...listingBodies(7, { prompts: PROMPTS, versions: 3 })].map(
  (body) => JSON.parse(body.toString()) as Readonly<Record<string, string>>[],
);

it('has items of 350 to 600 bytes, each with an id of its own', () => {
  const [first = []] = versions;
  const sizes = first.map((item) => JSON.stringify(item).length);
  expect(Math.min(...sizes)).toBeGreaterThanOrEqual(350);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(600);
  expect(new Set(first.map(({ id }) => id)).size).toBe(PROMPTS);
});

it('moves one prompt in a hundred from version to version, and nothing else', () => {
  for (const [index, items] of versions.slice(1).entries()) {
    const before = versions[index] ?? [];
    const changed = items.filter(({ status }, place) => status !== before[place]?.['status']);
    expect(changed).toHaveLength(PROMPTS / 100);
    const others = items.map((item) => ({ ...item, status: '' }));
    expect(others).toStrictEqual(before.map((item) => ({ ...item, status: '' })));
  }
});

it('is the same for the same project, and another one for another', () => {
  const of = (project: number) => [...listingBodies(project, { prompts: 3, versions: 2 })];
  expect(of(1)).toStrictEqual(of(1));
  expect(of(1)).not.toStrictEqual(of(2));
});

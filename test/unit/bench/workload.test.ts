import { expect, it } from 'vitest';
import { listingBodies } from '../../../bench/workload.ts';

const PROMPTS = 300;
const versions = [...listingBodies(7, { prompts: PROMPTS, versions: 3 })].map(
  (body) => JSON.parse(body.toString()) as Readonly<Record<string, string>>[],
);

it('a listing has items of 350 to 600 bytes with unique ids', () => {
  const [first = []] = versions;
  const sizes = first.map((item) => JSON.stringify(item).length);
  expect(Math.min(...sizes)).toBeGreaterThanOrEqual(350);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(600);
  expect(new Set(first.map(({ id }) => id)).size).toBe(PROMPTS);
});

it('two versions of a listing differ in the status of one prompt in a hundred only', () => {
  for (const [index, items] of versions.slice(1).entries()) {
    const before = versions[index] ?? [];
    const changed = items.filter(({ status }, place) => status !== before[place]?.['status']);
    expect(changed).toHaveLength(PROMPTS / 100);
    const others = items.map((item) => ({ ...item, status: '' }));
    expect(others).toStrictEqual(before.map((item) => ({ ...item, status: '' })));
  }
});

it('listings are the same for the same project, and differ between projects', () => {
  const of = (project: number) => [...listingBodies(project, { prompts: 3, versions: 2 })];
  expect(of(1)).toStrictEqual(of(1));
  expect(of(1)).not.toStrictEqual(of(2));
});

import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { createPageCache } from '../../../../src/web/page/cache.ts';
import { fakeClock } from '../../../support/monitor.ts';

function setUp() {
  const clock = fakeClock();
  const cached = createPageCache<string>(clock);
  const made: string[] = [];
  const get = (key: string, costMs = 0, client = 'somebody') =>
    cached(key, { client }, () => {
      made.push(key);
      clock.advance(costMs);
      return Promise.resolve(`${key} ${made.length}`);
    });
  return { clock, cached, made, get };
}

it('the page cache renders a page at most once per second, also for concurrent requests', async () => {
  const { clock, get } = setUp();

  expect(await Promise.all([get('a'), get('a'), get('b')])).toEqual(['a 1', 'a 1', 'b 2']);
  clock.advance(999);
  expect(await get('a')).toBe('a 1');
  clock.advance(1);
  expect(await get('a')).toBe('a 3');
});

it('the page cache keeps a slow page for 20 times its rendering time', async () => {
  const { clock, get } = setUp();

  await get('a', 200);
  clock.advance(3999);
  expect(await get('a')).toBe('a 1');
  clock.advance(1);
  expect(await get('a')).toBe('a 2');
});

it('the page cache does not keep a failed page', async () => {
  const { cached, get } = setUp();

  await expect(
    cached('a', { client: 'somebody' }, () => Promise.reject(new Error('no'))),
  ).rejects.toThrow('no');
  expect(await get('a')).toBe('a 1');
});

it('the page cache evicts the oldest of 100 pages and keeps the newest', async () => {
  const { get, made } = setUp();

  for (let page = 0; page < 100; page += 1) await get(`page ${page}`);
  await get('page 99');
  expect(made).toHaveLength(100);
  await get('page 0');
  expect(made).toHaveLength(101);
});

it('the page cache renders for 1/20 of the time, takes clients in turn and still serves cached pages', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const cached = createPageCache<string>(systemClock);
  const made: string[] = [];
  const get = (key: string, client: string) =>
    cached(key, { client }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      made.push(key);
      return key;
    });
  const all = Promise.all(Array.from({ length: 20 }, (_, n) => get(`page ${n}`, 'attacker')));
  await vi.advanceTimersByTimeAsync(1200);
  const atFirst = made.length;
  const mine = get('mine', 'visitor');
  expect(await get('page 10', 'visitor')).toBe('page 10');
  await vi.advanceTimersByTimeAsync(4200);

  expect(atFirst).toBeLessThanOrEqual(11);
  expect(made).toContain('mine');
  expect(made.length - atFirst).toBeLessThanOrEqual(3);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(await mine).toBe('mine');
  const answers = await all;
  expect(answers.filter((page) => page !== undefined).length).toBeLessThanOrEqual(16);
  expect(vi.getTimerCount()).toBe(0);
});

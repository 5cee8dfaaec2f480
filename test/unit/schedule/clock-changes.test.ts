import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import {
  DAY,
  HOUR,
  MINUTE,
  SECOND,
  jump,
  missed,
  pass,
  project,
  times,
  useWorld,
} from './world.ts';

const world = useWorld();

describe('a clock that is set forward', () => {
  it.each([
    ['1 s', SECOND, 0],
    ['11 s', 11 * SECOND, 0],
    ['1 h', HOUR, 359],
    ['8 h, as after a sleep', 8 * HOUR, 1000],
    ['1 year', 365 * DAY, 1000],
  ])(
    'by %s starts at most one run within 2 s and counts the others as missed',
    async (_, ms, count) => {
      world.scheduler.set([project('bot')], 0);
      world.scheduler.start();
      await pass(12 * SECOND);
      expect(world.polls.length).toBe(1);
      jump(ms);
      const jumpedAt = Date.now();
      await pass(2 * SECOND);
      expect(missed(world, 'bot')).toBe(count);
      expect(world.polls.length).toBe(ms < 8 * SECOND ? 1 : 2);
      const due = Math.floor(jumpedAt / (10 * SECOND)) * 10 * SECOND;
      expect(world.polls.at(-1)?.dueAt).toBe(due);
      await pass(20 * SECOND);
      expect(missed(world, 'bot')).toBe(count);
      expect(
        times(world, 'bot')
          .slice(-2)
          .every((time) => time.endsWith('0.000Z')),
      ).toBe(true);
    },
  );

  it('by 3 days starts the newest of more runs than are counted', async () => {
    world.scheduler.set([project('bot', { schedule: '* * 9 * * *' })], 0);
    world.scheduler.start();
    jump(3 * DAY);
    await pass(SECOND);
    expect(missed(world, 'bot')).toBe(1000);
    expect(world.polls.map(({ dueAt }) => new Date(dueAt).toISOString())).toEqual([
      '2025-11-24T09:59:59.000Z',
    ]);
  });

  it('does not count a late tick as missed if the next one is not due yet', async () => {
    world.scheduler.set([project('bot')], 0);
    world.scheduler.start();
    await pass(9 * SECOND);
    jump(9 * SECOND);
    await pass(SECOND);
    expect(world.polls.map(({ dueAt }) => dueAt)).toEqual([Date.parse('2025-11-21T10:00:10Z')]);
    expect(world.events).toEqual([]);
  });
});

describe('a clock that is set back', () => {
  it.each([
    ['1 s', SECOND],
    ['1.5 s', 1500],
    ['1 h', HOUR],
    ['1 year', 365 * DAY],
  ])('by %s does not interrupt the rhythm of the polls', async (_, ms) => {
    world.scheduler.set([project('bot')], 0);
    world.scheduler.start();
    await pass(12 * SECOND);
    jump(-ms);
    world.polls = [];
    await pass(31 * SECOND);
    expect(world.polls.length).toBeGreaterThanOrEqual(3);
    expect(times(world, 'bot').every((time) => time.endsWith('0.000Z'))).toBe(true);
    expect(world.events).toEqual([]);
  });

  it.each([
    ['1 s', SECOND, 10 * SECOND],
    ['1 h', HOUR, 10 * SECOND],
    ['1 h, with a run every second,', HOUR, SECOND],
  ])('by %s just before a tick does not skip that tick', async (_, ms, period) => {
    const schedule = `*/${period / SECOND} * * * * *`;
    world.scheduler.set([project('bot', { schedule })], 0);
    world.scheduler.start();
    await pass(19 * SECOND + 700);
    expect(times(world, 'bot').at(-1)).toBe(period === SECOND ? '10:00:19.000Z' : '10:00:10.000Z');
    world.polls = [];
    jump(-ms);
    await pass(period + 2 * SECOND);
    const [first] = world.polls;
    expect(first?.dueAt).toBe(Date.parse('2025-11-21T10:00:20Z') - (ms < HOUR ? 0 : ms));
    expect((first?.at ?? Infinity) - (first?.dueAt ?? 0)).toBeLessThan(SECOND);
    expect(world.events).toEqual([]);
  });

  it.each([
    ['300 ms', 300],
    ['1 s', SECOND],
    ['9 s', 9 * SECOND],
  ])('by %s just after a tick, less than an interval, does not repeat that tick', async (_, ms) => {
    world.scheduler.set([project('bot')], 0);
    world.scheduler.start();
    await pass(9 * SECOND + 800);
    jump(-ms);
    await pass(20 * SECOND);
    expect(world.polls.map(({ dueAt }) => new Date(dueAt).toISOString().slice(14, 19))).toEqual([
      '00:10',
      '00:20',
    ]);
  });

  it.each(['before', 'after'])(
    'does not run a tick that the first poll has replaced (project added %s the start)',
    async (when) => {
      if (when === 'after') world.scheduler.start();
      world.scheduler.set([project('bot', { lastPollAt: undefined })], 0);
      world.scheduler.start();
      await pass(2 * SECOND);
      jump(-3 * SECOND);
      await pass(12 * SECOND);
      expect(world.polls.map(({ dueAt }) => new Date(dueAt).toISOString().slice(14))).toEqual([
        '00:00.250Z',
        '00:10.000Z',
      ]);
    },
  );

  it('by 1 h keeps the jitter of each poll', async () => {
    world.scheduler.set([project('bot', { schedule: '* * * * * *' })], 900);
    world.scheduler.start();
    await pass(SECOND);
    jump(-HOUR);
    world.polls = [];
    await pass(10 * SECOND);
    expect(world.polls.length).toBeGreaterThanOrEqual(8);
    const inRhythm = world.polls.slice(1);
    expect(new Set(inRhythm.map(({ at }) => at % SECOND)).size).toBe(1);
  });
});

describe('the heartbeat of the scheduler', () => {
  it('goes on in another turn of the event loop if many polls start, but not after a stop', async () => {
    const clock = { ...systemClock, monotonic: () => Date.now() + 1.1 * world.polls.length };
    const scheduler = world.create({ clock });
    const projects = Array.from({ length: 25 }, (_, index) => project(`p${index}`));
    scheduler.set(projects, 0);
    scheduler.start();
    await pass(9 * SECOND + 750);
    expect(world.polls).toHaveLength(10);
    await pass(3);
    expect(new Set(world.polls.map(({ id }) => id)).size).toBe(25);
    await pass(10 * SECOND - 3);
    expect(world.polls).toHaveLength(35);
    scheduler.stop();
    await pass(3);
    expect(world.polls).toHaveLength(35);
  });

  it('starts a due poll at once if it fires late', async () => {
    world.scheduler.set([project('bot', { schedule: '* * * * * *' })], 0);
    world.scheduler.start();
    await pass(650);
    jump(2500);
    await pass(101);
    expect(times(world, 'bot')).toEqual(['10:00:03.500Z']);
    expect(world.polls[0]?.dueAt).toBe(Date.parse('2025-11-21T10:00:03Z'));
    expect(missed(world, 'bot')).toBe(2);
  });

  it('keeps firing while the clock is 1.5 s behind the timers', async () => {
    const late = world.create({ clock: { ...systemClock, now: () => Date.now() - 1500 } });
    late.set([project('bot')], 0);
    late.start();
    await pass(MINUTE);
    late.stop();
    expect(world.polls.length).toBeGreaterThanOrEqual(5);
  });
});

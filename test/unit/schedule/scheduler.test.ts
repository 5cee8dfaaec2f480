import { beforeEach, describe, expect, it } from 'vitest';
import {
  DAY,
  HOUR,
  MINUTE,
  SECOND,
  START,
  jump,
  missed,
  overlapped,
  pass,
  project,
  times,
  useWorld,
} from './world.ts';

const world = useWorld();

describe('a project at the start of the scheduler', () => {
  const schedule = '*/5 * * * *';

  it.each([
    ['at once if it never was', undefined, true],
    ['at once if a run came due while the daemon was down', START - 2 * MINUTE, true],
    ['by its schedule if none did', START - 100, false],
    ['by its schedule if its last poll lies in the future', START + DAY, false],
  ])('is polled %s', async (_, lastPollAt, atOnce) => {
    world.scheduler.set([project('bot', { schedule, lastPollAt })], 0);
    expect(world.polls).toEqual([]);
    world.scheduler.start();
    expect(world.polls.length).toBe(atOnce ? 1 : 0);
    expect(world.scheduler.next('bot')).toBe(Date.parse('2025-11-21T10:05:00Z'));
    await pass(5 * MINUTE);
    expect(times(world, 'bot').at(-1)).toBe('10:05:00.000Z');
    expect(world.events).toEqual([]);
  });

  it('is polled at once even if its jitter has not passed', () => {
    world.scheduler.set([project('bot', { lastPollAt: undefined })], HOUR);
    world.scheduler.start();
    expect(times(world, 'bot')).toEqual(['10:00:00.250Z']);
  });

  it('is polled by its schedule if only its jitter has not passed', () => {
    const hourly = project('bot', { schedule: '0 * * * *', lastPollAt: START - 10 * MINUTE });
    world.scheduler.set([hourly], HOUR);
    const next = world.scheduler.next('bot') ?? 0;
    expect(next).toBeGreaterThan(START);
    expect(next).toBeLessThan(START + HOUR);
    world.scheduler.start();
    expect(world.polls).toEqual([]);
  });
});

describe('the scheduler with a steady clock', () => {
  it('polls each project by its own schedule, on the second', async () => {
    world.scheduler.set([project('a'), project('b', { schedule: '5 * * * * *' })], 0);
    world.scheduler.start();
    await pass(30 * SECOND);
    expect(times(world, 'a')).toEqual(['10:00:10.000Z', '10:00:20.000Z', '10:00:30.000Z']);
    expect(times(world, 'b')).toEqual(['10:00:05.000Z']);
    expect(world.events).toEqual([]);
  });

  it('passes each poll its due time and that of the next one', async () => {
    world.scheduler.set([project('bot')], 0);
    world.scheduler.start();
    await pass(10 * SECOND);
    const due = Date.parse('2025-11-21T10:00:10Z');
    expect(world.polls[0]).toMatchObject({ dueAt: due });
  });
});

describe('jitter', () => {
  const ids = Array.from({ length: 200 }, (_, index) => `project-${index}`);

  it('is the same for a project after a restart, and evenly spread', () => {
    const other = world.create();
    const projects = ids.map((id) => project(id));
    for (const each of [world.scheduler, other]) each.set(projects, 5 * SECOND);
    const offsets = ids.map((id) => (world.scheduler.next(id) ?? 0) % (10 * SECOND));
    expect(offsets).toEqual(ids.map((id) => (other.next(id) ?? 0) % (10 * SECOND)));
    expect(Math.max(...offsets)).toBeLessThan(5 * SECOND);
    for (let second = 0; second < 5; second += 1) {
      const started = offsets.filter((offset) => Math.floor(offset / SECOND) === second).length;
      expect(started).toBeGreaterThan(10);
    }
  });

  it('delays each poll by the same part of a second', async () => {
    world.scheduler.set([project('bot')], 900);
    const next = world.scheduler.next('bot') ?? 0;
    const offset = next % SECOND;
    expect(offset).toBeGreaterThan(0);
    world.scheduler.start();
    await pass(30 * SECOND);
    expect(world.polls.map(({ at }) => at % (10 * SECOND))).toEqual(world.polls.map(() => offset));
    expect(world.polls.map(({ dueAt }) => dueAt)).toEqual(world.polls.map(({ at }) => at));
    expect(world.polls.length).toBeGreaterThanOrEqual(3);
  });

  it('longer than the interval skips no run', async () => {
    world.scheduler.set([project('bot')], HOUR);
    world.scheduler.start();
    await pass(2 * MINUTE);
    expect(world.polls.length).toBe(12);
    expect(world.events).toEqual([]);
  });
});

describe('a poll that still runs', () => {
  it('causes each tick of its own project to be skipped and counted as overlapped once', async () => {
    world.slow = true;
    world.scheduler.set([project('a'), project('b')], 0);
    world.scheduler.start();
    await pass(10 * SECOND);
    world.polls.find(({ id }) => id === 'b')?.finish();
    await pass(25 * SECOND);
    expect(times(world, 'a').length).toBe(1);
    expect(overlapped(world, 'a')).toBe(2);
    expect(overlapped(world, 'b')).toBe(1);
    expect(missed(world, 'a')).toBe(0);
    expect(world.scheduler.next('a')).toBe(Date.parse('2025-11-21T10:00:40Z'));
    for (const poll of world.polls) poll.finish();
    await pass(5 * SECOND);
    expect(times(world, 'a')).toEqual(['10:00:10.000Z', '10:00:40.000Z']);
  });

  it('is waited for after a stop, and no other one starts', async () => {
    world.slow = true;
    world.scheduler.set([project('a'), project('b', { schedule: '15 * * * * *' })], 900);
    world.scheduler.start();
    await pass(11 * SECOND);
    expect(times(world, 'a').length).toBe(1);
    world.scheduler.stop();
    let idle = false;
    const waiting = world.scheduler.idle().then(() => (idle = true));
    await pass(HOUR);
    expect(idle).toBe(false);
    world.polls[0]?.finish();
    await waiting;
    expect(world.polls.length).toBe(1);
  });

  it('that throws is reported to onError and stops no later poll', async () => {
    const broken = world.create({
      run: () => {
        throw new Error('broken');
      },
    });
    broken.set([project('bot')], 0);
    broken.start();
    await pass(25 * SECOND);
    broken.stop();
    expect(world.errors).toEqual([new Error('broken'), new Error('broken')]);
  });
});

describe('a new set of projects', () => {
  beforeEach(async () => {
    world.slow = true;
    world.scheduler.set([project('kept'), project('changed'), project('removed')], 0);
    world.scheduler.start();
    await pass(14 * SECOND);
  });

  function change(): void {
    const changed = project('changed', { schedule: '17 * * * * *' });
    const added = project('added', { lastPollAt: Date.now() });
    world.scheduler.set([project('kept'), changed, added], 0);
  }

  it('polls an added project at once, even if it was polled just before', () => {
    change();
    expect(world.polls.slice(3).map(({ id }) => id)).toEqual(['added']);
    expect(world.scheduler.next('added')).toBe(Date.parse('2025-11-21T10:00:20Z'));
  });

  it('keeps the due time and the running poll of an unchanged project', async () => {
    change();
    expect(world.scheduler.next('kept')).toBe(Date.parse('2025-11-21T10:00:20Z'));
    await pass(6 * SECOND);
    expect(overlapped(world, 'kept')).toBe(1);
  });

  it('applies the new schedule of a changed project', async () => {
    world.polls.find(({ id }) => id === 'changed')?.finish();
    await pass(1);
    change();
    expect(world.scheduler.next('changed')).toBe(Date.parse('2025-11-21T10:00:17Z'));
    await pass(10 * SECOND);
    expect(times(world, 'changed')).toEqual(['10:00:10.000Z', '10:00:17.000Z']);
  });

  it('stops polling a removed project, and idle still waits for its running poll', async () => {
    change();
    await pass(MINUTE);
    expect(times(world, 'removed').length).toBe(1);
    expect(world.scheduler.next('removed')).toBeUndefined();
    expect(world.scheduler.schedule('removed')).toBeUndefined();
    for (const id of ['kept', 'changed', 'added']) {
      expect(world.scheduler.schedule(id)).toBeDefined();
    }
    world.scheduler.stop();
    let idle = false;
    const waiting = world.scheduler.idle().then(() => (idle = true));
    for (const poll of world.polls) if (poll.id !== 'removed') poll.finish();
    await pass(SECOND);
    expect(idle).toBe(false);
    for (const poll of world.polls) poll.finish();
    await waiting;
  });

  it('cancels the poll of a removed project that is due in less than a second', async () => {
    world.slow = false;
    world.scheduler.set([project('jittery')], 900);
    await pass(5 * SECOND + 751);
    const due = world.scheduler.next('jittery') ?? 0;
    expect(due - Date.now()).toBeGreaterThan(0);
    expect(due - Date.now()).toBeLessThan(SECOND);
    world.scheduler.set([], 900);
    await pass(SECOND);
    expect(times(world, 'jittery')).toEqual(['10:00:14.250Z']);
  });

  it('is rejected as a whole if one of its schedules is invalid', () => {
    const bad = project('bad', { schedule: '61 * * * *' });
    expect(() => world.scheduler.set([project('added'), bad], 0)).toThrow(RangeError);
    expect(world.scheduler.schedule('added')).toBeUndefined();
    expect(world.scheduler.schedule('removed')).toBeDefined();
    expect(world.polls.length).toBe(3);
  });

  it('starts no second poll of a project that was removed and added again while its poll runs', async () => {
    world.scheduler.set([], 0);
    world.scheduler.set([project('removed')], 0);
    await pass(SECOND);
    expect(times(world, 'removed').length).toBe(1);
    expect(overlapped(world, 'removed')).toBe(1);
  });

  it('applies a new jitter', async () => {
    world.slow = false;
    for (const poll of world.polls) poll.finish();
    world.scheduler.set([project('kept')], 900);
    world.polls = [];
    await pass(20 * SECOND);
    expect(world.polls.length).toBe(2);
    expect(world.polls[0]?.at).toBe(world.polls[0]?.dueAt);
    expect((world.polls[0]?.at ?? 0) % SECOND).toBeGreaterThan(0);
  });
});

describe('the due time', () => {
  it('is returned with the longest interval of each project', () => {
    world.scheduler.set([project('a'), project('b', { schedule: '0 9 * * 1-5' })], 0);
    expect(world.scheduler.schedule('a')).toEqual({
      nextPollAt: Date.parse('2025-11-21T10:00:10Z'),
      maxIntervalSeconds: 10,
    });
    expect(world.scheduler.schedule('b')).toEqual({
      nextPollAt: Date.parse('2025-11-24T09:00:00Z'),
      maxIntervalSeconds: 3 * 86400,
    });
    expect(world.scheduler.schedule('nobody')).toBeUndefined();
    expect(world.scheduler.next('nobody')).toBeUndefined();
  });

  it('stays in the past if its tick did not happen', async () => {
    world.scheduler.set([project('bot')], 0);
    world.scheduler.start();
    world.scheduler.stop();
    await pass(HOUR);
    expect(world.scheduler.next('bot')).toBe(Date.parse('2025-11-21T10:00:10Z'));
  });
});

describe('a project owned by another worker', () => {
  const polled = (at: number) => project('bot', { lastPollAt: at });

  it('has a schedule but is never polled', async () => {
    world.scheduler.set(
      [{ ...project('bot', { lastPollAt: undefined }), isOwnedElsewhere: true }],
      0,
    );
    world.scheduler.start();
    jump(-5 * SECOND);
    await pass(HOUR);
    expect(world.polls).toEqual([]);
    expect(world.scheduler.next('bot')).toBe(Date.parse('2025-11-21T11:00:00Z'));
    const known = world.scheduler.schedule('bot');
    expect(known).toEqual({ nextPollAt: undefined, maxIntervalSeconds: 10 });
  });

  it.each([
    ['at once if it never was polled', undefined, 1],
    ['at once if it missed a run', START + 19 * SECOND, 1],
    ['by its schedule if it missed none', START + 20 * SECOND, 0],
    ['by its schedule if a clock slightly ahead polled it just now', START + 30 * SECOND, 0],
    ['at once if a clock that is hours ahead polled it last', START + 3 * HOUR, 1],
  ])('is polled, once this worker owns it, %s', async (_, lastPollAt, polls) => {
    world.scheduler.set([{ ...polled(START), isOwnedElsewhere: true }], 0);
    world.scheduler.start();
    await pass(29.7 * SECOND);
    world.scheduler.set([project('bot', { lastPollAt })], 0);
    expect(world.polls.length).toBe(polls);
    await pass(SECOND);
    const isAhead = lastPollAt === START + 30 * SECOND;
    expect(world.polls.length).toBe(isAhead ? 0 : polls + 1);
  });

  it('is late once a poll after the last known one has been due for 2 minutes', async () => {
    world.scheduler.set([{ ...polled(START), isOwnedElsewhere: true }], 0);
    world.scheduler.start();
    await pass(129.7 * SECOND);
    const next = world.scheduler.next('bot');
    expect(next).toBeGreaterThan(Date.now());
    expect(world.scheduler.next('bot', undefined)).toBe(next);
    expect(world.scheduler.next('bot', START + SECOND)).toBe(next);
    await pass(SECOND);
    expect(world.scheduler.next('bot', START + SECOND)).toBe(START - 250 + 10 * SECOND);
    expect(world.scheduler.next('bot', START + 11 * SECOND)).toBeGreaterThan(Date.now());
  });
});

it('the scheduler calls mayRun before each run, even if mayRun sets new projects', async () => {
  let may = true;
  const scheduler = world.create({
    mayRun: (id) => {
      if (id === 'b' || may) return true;
      scheduler.set([{ ...project('a'), isOwnedElsewhere: true }, project('b')], 0);
      return false;
    },
  });
  scheduler.set([project('a'), project('b')], 0);
  scheduler.start();
  await pass(15 * SECOND);
  may = false;
  await pass(10 * SECOND);
  scheduler.stop();
  expect(times(world, 'a')).toEqual(['10:00:10.000Z']);
  expect(times(world, 'b')).toEqual(['10:00:10.000Z', '10:00:20.000Z']);
});

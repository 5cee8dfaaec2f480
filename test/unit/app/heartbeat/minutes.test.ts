import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { createMinutes, type Gap } from '../../../../src/app/heartbeat/minutes.ts';
import type { FinishedPoll } from '../../../../src/monitor/events.ts';

const NOW = Date.parse('2026-11-21T10:00:00Z');
const OK = { failure: undefined, isStored: true } as FinishedPoll;
const failed = (reason: string) => ({ failure: { reason }, isStored: true }) as FinishedPoll;
/** The service answered 500, and the store failed too. */
const NOT_STORED = { failure: { reason: 'server_error' }, isStored: false } as FinishedPoll;

/** Sets up minutes that a test ends and polls that it settles. */
function setUp() {
  const verdicts: (Gap | 'whole')[] = [];
  const minutes = createMinutes({ ...systemClock, now: () => NOW }, (gap) =>
    verdicts.push(gap ?? 'whole'),
  );
  return {
    verdicts,
    minutes,
    poll: (dueAt = NOW) => {
      const poll = Promise.withResolvers<FinishedPoll | undefined>();
      let isWanted = true;
      minutes.watch({ dueAt }, poll.promise, () => isWanted);
      return {
        dismiss: () => {
          isWanted = false;
        },
        end: async (finished: FinishedPoll | undefined) => {
          poll.resolve(finished);
          await poll.promise;
        },
        crash: async () => {
          poll.reject(new Error('a bug'));
          await poll.promise.catch(() => {});
          await Promise.resolve();
        },
      };
    },
  };
}

describe('a minute without a gap', () => {
  it('is reported if no poll was due', () => {
    const { minutes, verdicts } = setUp();
    minutes.end();
    minutes.end();
    expect(verdicts).toEqual(['whole', 'whole']);
  });

  it.each([['auth'], ['server_error'], ['timeout'], ['network']])(
    'is reported if the service failed its polls with %s',
    async (reason) => {
      const { minutes, verdicts, poll } = setUp();
      await poll().end(failed(reason));
      minutes.end();
      expect(verdicts).toEqual(['whole']);
    },
  );

  it('is reported once the polls that still run at its end have ended', async () => {
    const { minutes, verdicts, poll } = setUp();
    const [one, other] = [poll(), poll()];
    await one.end(OK);
    minutes.end();
    expect(verdicts).toEqual([]);
    await other.end(OK);
    expect(verdicts).toEqual(['whole']);
    minutes.end();
    expect(verdicts).toEqual(['whole', 'whole']);
  });
});

describe('a poll that is no longer wanted', () => {
  it.each([
    ['without an outcome', undefined],
    ['unstored', NOT_STORED],
  ])('leaves no gap if it ends %s', async (_, finished) => {
    const { minutes, verdicts, poll } = setUp();
    const one = poll();
    one.dismiss();
    await one.end(finished);
    minutes.end();
    expect(verdicts).toEqual(['whole']);
  });

  it('leaves no gap if it ended without an outcome earlier in the same minute', async () => {
    const { minutes, verdicts, poll } = setUp();
    const one = poll();
    await one.end(undefined);
    one.dismiss();
    minutes.end();
    expect(verdicts).toEqual(['whole']);
  });

  it('does not count beside one that is wanted', async () => {
    const { minutes, verdicts, poll } = setUp();
    const [one, other] = [poll(), poll()];
    minutes.end();
    one.dismiss();
    expect(verdicts).toEqual([]);
    await other.end(OK);
    expect(verdicts).toEqual(['whole']);
    const [third, fourth] = [poll(), poll()];
    third.dismiss();
    await third.end(undefined);
    await fourth.end(undefined);
    minutes.end();
    expect(verdicts).toEqual(['whole', 'unfinished']);
  });

  it('postpones only the verdict on its own minute, to the end of the next one, while it runs', async () => {
    const { minutes, verdicts, poll } = setUp();
    const one = poll();
    minutes.end();
    one.dismiss();
    expect(verdicts).toEqual([]);
    minutes.end();
    expect(verdicts).toEqual(['whole', 'whole']);
    minutes.end();
    await one.end(undefined);
    expect(verdicts).toEqual(['whole', 'whole', 'whole']);
  });

  it('makes no later minute "stuck"', () => {
    const { minutes, verdicts, poll } = setUp();
    const one = poll();
    minutes.end();
    minutes.end();
    one.dismiss();
    minutes.end();
    expect(verdicts).toEqual(['stuck', 'stuck', 'whole']);
  });
});

describe('the gap of a minute', () => {
  it.each([
    ['store', NOT_STORED],
    ['unfinished', undefined],
  ])('is "%s" if a poll ends so, and the next minute has none', async (gap, finished) => {
    const { minutes, verdicts, poll } = setUp();
    await poll().end(finished);
    await poll().end(OK);
    minutes.end();
    await poll().end(OK);
    minutes.end();
    expect(verdicts).toEqual([gap, 'whole']);
  });

  it.each(['skipped', 'missed', 'lease_lost'] as const)(
    'is the first one recorded: %s',
    async (gap) => {
      const { minutes, verdicts, poll } = setUp();
      await poll().end(OK);
      minutes.fail(gap);
      minutes.fail('late');
      minutes.end();
      expect(verdicts).toEqual([gap]);
    },
  );

  it('is "late" if a poll begins 60 s after it was due', async () => {
    const { minutes, verdicts, poll } = setUp();
    await poll(NOW - 59_999).end(OK);
    minutes.end();
    await poll(NOW - 60_000).end(OK);
    minutes.end();
    expect(verdicts).toEqual(['whole', 'late']);
  });

  it('is "store" if its poll ends unstored in the next minute', async () => {
    const { minutes, verdicts, poll } = setUp();
    const late = poll();
    minutes.end();
    await late.end(NOT_STORED);
    minutes.end();
    expect(verdicts).toEqual(['store', 'whole']);
  });

  it('is "stuck" until a poll that outlasts the next minute has ended', async () => {
    const { minutes, verdicts, poll } = setUp();
    const stuck = poll();
    for (let ends = 0; ends < 4; ends += 1) minutes.end();
    expect(verdicts).toEqual(['stuck', 'stuck', 'stuck', 'stuck']);
    await stuck.end(OK);
    minutes.end();
    expect(verdicts.slice(4)).toEqual(['whole']);
  });

  it('is "unfinished" if a poll throws', async () => {
    const { minutes, verdicts, poll } = setUp();
    await poll().crash();
    minutes.end();
    expect(verdicts).toEqual(['unfinished']);
  });
});

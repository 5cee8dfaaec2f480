import { beforeEach, describe, expect, it } from 'vitest';
import { causeOf } from '../../../src/domain/cause.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import type { MonitorEvent } from '../../../src/monitor/events.ts';
import type { CommittedTransition, PollHealth } from '../../../src/monitor/ports/store.ts';
import type { ConfiguredProject } from '../../../src/monitor/ports/watched-project.ts';
import type { Message, MessageOf } from '../../../src/notify/message.ts';
import { Outbox } from '../../../src/notify/outbox.ts';
import type { NotifyStore, Subscriber } from '../../../src/notify/ports.ts';
import { type Items, pollItems } from '../../support/experiments.ts';
import { settle } from '../../support/failures.ts';
import { fakeClock } from '../../support/monitor.ts';
import { storeWith } from '../../support/store-with.ts';
import { type Harness, UP } from './harness.ts';

const START = 1_700_000_000_000;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const expected = { limitMs: HOUR, source: 'configured', typicalMs: undefined } as const;

const ALL: Subscriber = {
  name: 'chat',
  on: ['failed', 'completed', 'stuck', 'down'],
  teams: undefined,
  projects: undefined,
};
const FINISHED: Subscriber = { ...ALL, on: ['finished'] };

function polledAt(at: number): PollHealth {
  return { ...UP, lastPollAt: at, lastSuccessAt: at };
}

export function describeNotifications(h: Harness): void {
  describe('notifications', () => {
    let clock: ReturnType<typeof fakeClock>;
    let ids: string[];
    let health: Map<string, PollHealth>;
    let givenUp: unknown[];

    beforeEach(async () => {
      clock = fakeClock(START);
      ids = ['p', 'q'];
      health = new Map();
      givenUp = [];
      await h.store.configureProjects(ids, START - HOUR);
      await h.see('p', {}, START - HOUR);
      await h.see('q', {}, START - HOUR);
    });

    /** Returns the projects with prompts that were told to be stuck. */
    async function withStuck(): Promise<readonly string[]> {
      const of = { receiver: 'chat', kind: 'stuck' } as const;
      return [...(await h.store.notifications.toldProjects(of)).keys()];
    }

    /** Starts the outbox of a process, which polls all projects or some. */
    function start(
      receiver: Subscriber = ALL,
      {
        mayTell = () => true,
        untoldUntil = () => undefined,
        isQuiet = () => false,
        store = h.store.notifications,
        promptUrl = () => 'https://evals.example.com/{project}/{prompt_id}',
      }: {
        promptUrl?: () => string | undefined;
        untoldUntil?: (project: string) => number | undefined;
        isQuiet?: (project: string) => boolean;
        mayTell?: (project: string) => boolean;
        store?: NotifyStore;
      } = {},
    ) {
      const outbox = new Outbox(receiver, {
        store,
        clock,
        projects: () => new Map(ids.map((id) => [id, projectOf(id)])),
        mayTell,
        health: (id) => health.get(id) ?? polledAt(clock.now()),
        expectationsOf: () => ({ PENDING: expected, RUNNING: expected }),
        isQuiet,
        untoldUntil,
        maxIntervalMs: () => 10 * SECOND,
        addresses: () => ({
          externalUrl: 'https://watch.example.com',
          promptUrl: promptUrl(),
        }),
        onGivenUp: (...what) => givenUp.push(what),
      });
      const next = async () => {
        const found = await outbox.next();
        return 'message' in found ? found.message : undefined;
      };
      return {
        outbox,
        next,
        /** Returns the messages that are due within this time, each of which is answered. */
        told: async (withinMs: number) => {
          const messages: Message[] = [];
          for (const end = clock.now() + withinMs; ;) {
            const found = await outbox.next();
            if ('message' in found) {
              messages.push(found.message);
              await outbox.done(found.message);
            } else if (clock.now() + found.waitMs > end) {
              clock.advance(Math.max(0, end - clock.now()));
              return messages;
            } else clock.advance(Math.max(1, found.waitMs));
          }
        },
        /** Polls a project now. */
        see: async (project: string, statuses: Readonly<Record<string, string>>) => {
          const moved = (await h.see(project, statuses, clock.now())) ?? [];
          for (const transition of moved) {
            outbox.observe({ type: 'record.transition', project, transition });
          }
          return moved;
        },
        /** Polls a project, whose prompts belong to experiments. */
        show: async (project: string, items: Items) => {
          const committed = await pollItems(h.store, project, items, clock.now());
          const { transitions = [], finishes = [] } = committed ?? {};
          for (const transition of transitions) {
            outbox.observe({ type: 'record.transition', project, transition });
          }
          for (const finish of finishes) outbox.observe({ type: 'experiment.finished', finish });
          return transitions.filter(({ to }) => to === 'FAILED');
        },
        settle: async (
          project: string,
          failures: readonly CommittedTransition[],
          errorMsg = 'timed out after 30 s',
        ) => {
          for (const { transitionId } of failures) {
            const errorInfo = { error_id: 'TIMEOUT', error_msg: errorMsg };
            const settled = { errorInfo, errorMsgTruncated: false };
            await settle(h.store, transitionId, settled, clock.now());
            outbox.observe(failedEvent(project, transitionId));
          }
        },
      };
    }

    it('tell a receiver that is new nothing of the past', async () => {
      const before = start({ ...ALL, name: 'other' });
      await before.see('p', { x: 'FAILED', y: 'COMPLETED' });
      const { told, see } = start();
      expect(await told(2 * MINUTE)).toEqual([]);
      await see('p', { x: 'FAILED', y: 'COMPLETED', z: 'COMPLETED' });
      expect(await told(2 * MINUTE)).toMatchObject([
        {
          type: 'prompts.completed',
          data: { project: 'p', count: 1, prompts: [{ prompt_id: 'z' }] },
        },
      ]);
    });

    it('tell nothing of the past of a kind that is added', async () => {
      const before = start({ ...ALL, on: ['failed'] });
      await before.told(MINUTE);
      await before.see('p', { x: 'COMPLETED' });
      const { told, see } = start();
      expect(await told(2 * MINUTE)).toEqual([]);
      await see('p', { x: 'COMPLETED', y: 'COMPLETED' });
      expect(await told(2 * MINUTE)).toMatchObject([{ data: { count: 1 } }]);
    });

    it('link the page of a prompt without an address at the service', async () => {
      const { told, see } = start(ALL, { promptUrl: () => undefined });
      await told(MINUTE);
      await see('p', { 'x/y': 'COMPLETED' });
      const url = 'https://watch.example.com/projects/p/prompts/x%2Fy';
      expect(await told(2 * MINUTE)).toMatchObject([{ data: { prompts: [{ url }] } }]);
    });

    it('tell all failures of a poll in one message, with the counts of their causes', async () => {
      const { told, see, settle: settleAll } = start();
      await told(0);
      const all = Array.from({ length: 1000 }, (_, index) => [`x${index}`, 'FAILED']);
      const failures = await see('p', Object.fromEntries(all));
      expect(await told(SECOND)).toEqual([]);
      await settleAll('p', failures.slice(0, 600), 'm'.repeat(1000));
      await settleAll('p', failures.slice(600));
      const [message, ...others] = await told(5 * MINUTE);
      expect(others).toEqual([]);
      expect(message).toMatchObject({
        type: 'prompts.failed',
        // An outcome is in the store soon after it was emitted.
        timestamp: new Date(START + 2 * SECOND).toISOString(),
        data: {
          project: 'p',
          team: 'search',
          url: 'https://watch.example.com/projects/p',
          count: 1000,
          causes: [
            { count: 600, error_id: 'TIMEOUT' },
            { count: 400, shape: 'timed out after <*>' },
          ],
        },
      });
      const { prompts } = (message as Extract<Message, { type: 'prompts.failed' }>).data;
      expect(prompts).toHaveLength(10);
      expect(prompts[0]).toMatchObject({
        prompt_id: 'x0',
        prompt_name: 'name of x0',
        url: 'https://evals.example.com/p/x0',
        time: new Date(START).toISOString(),
        error_info: { error_id: 'TIMEOUT', error_msg: `${'m'.repeat(299)}…` },
      });
      expect(prompts[0]?.cause).toBe(
        causeOf({ error_id: 'TIMEOUT', error_msg: 'm'.repeat(1000) }).id,
      );
    });

    it('let a failure wait for its outcome for a minute at most, and those after it too', async () => {
      const { told, see, settle: settleAll } = start();
      await told(0);
      await see('p', { x: 'FAILED' });
      clock.advance(30 * SECOND);
      const later = await see('p', { x: 'FAILED', y: 'FAILED' });
      await settleAll('p', later);
      expect(await told(29 * SECOND)).toEqual([]);
      expect(await told(3 * SECOND)).toMatchObject([
        {
          data: {
            count: 2,
            prompts: [
              { prompt_id: 'x', error_info: null, reason: null, cause: null },
              { prompt_id: 'y', error_info: { error_id: 'TIMEOUT' } },
            ],
          },
        },
      ]);
    });

    it('let a failure wait for its outcome after a restart, and those after it too', async () => {
      const before = start();
      await before.told(0);
      await before.see('p', { x: 'FAILED' });
      clock.advance(30 * SECOND);
      await before.settle('p', await before.see('p', { x: 'FAILED', y: 'FAILED' }));
      const { told } = start();
      expect(await told(29 * SECOND)).toEqual([]);
      expect(await told(3 * SECOND)).toMatchObject([{ data: { count: 2 } }]);
    });

    it('tell each failure that another process stored, also after the clock was set back', async () => {
      await start().told(0);
      const before = start();
      await before.see('p', { x: 'FAILED' });
      clock.set(START - 10 * MINUTE);
      await before.see('p', { x: 'FAILED', y: 'FAILED' });
      clock.set(START);
      expect(await start().told(2 * MINUTE)).toMatchObject([
        { data: { count: 2, prompts: [{ prompt_id: 'x' }, { prompt_id: 'y' }] } },
      ]);
    });

    it('gather what comes within a minute after a message', async () => {
      const { told, see } = start();
      await told(0);
      await see('p', { a: 'COMPLETED' });
      expect(await told(SECOND)).toMatchObject([{ data: { count: 1 } }]);
      await see('p', { a: 'COMPLETED', b: 'COMPLETED' });
      await see('q', { c: 'COMPLETED' });
      clock.advance(20 * SECOND);
      await see('p', { a: 'COMPLETED', b: 'COMPLETED', d: 'COMPLETED' });
      expect(await told(35 * SECOND)).toMatchObject([{ data: { project: 'q', count: 1 } }]);
      expect(await told(10 * SECOND)).toMatchObject([{ data: { project: 'p', count: 2 } }]);
    });

    it('lose nothing, and repeat the same message, whenever the process is killed', async () => {
      await start().told(0);
      await start().see('p', { x: 'COMPLETED' });
      // Before the message is composed, and while it is stored.
      const broken = storeWith(h.store.notifications, {
        compose: async () => {
          throw new StoreError('other', 'killed');
        },
      });
      await expect(start(ALL, { store: broken }).next()).rejects.toThrow('killed');
      const lost = storeWith(h.store.notifications, {
        compose: async (composed) => {
          await h.store.notifications.compose(composed);
          throw new StoreError('other', 'the answer is lost');
        },
      });
      const unlucky = start(ALL, { store: lost });
      await expect(unlucky.next()).rejects.toThrow('the answer is lost');
      const first = await unlucky.next();
      expect(first).toMatchObject({ type: 'prompts.completed', data: { count: 1 } });
      // While it is sent, and before it is deleted.
      await h.reopen();
      const again = start();
      expect(await again.next()).toEqual(first);
      await h.store.configureProjects(ids, START);
      await again.see('p', { x: 'COMPLETED', y: 'COMPLETED' });
      expect(await again.next()).toEqual(first);
      expect(await start().next()).toEqual(first);
      if (first) await again.outbox.done(first);
      // Afterwards.
      expect(await start().told(2 * MINUTE)).toMatchObject([
        { data: { count: 1, prompts: [{ prompt_id: 'y' }] } },
      ]);
      expect(await start().told(2 * MINUTE)).toEqual([]);
    });

    it('find a message of several projects whose answer from the store was lost', async () => {
      const lost = storeWith(h.store.notifications, {
        compose: async (composed) => {
          await h.store.notifications.compose(composed);
          throw new StoreError('other', 'the answer is lost');
        },
      });
      const { told } = start(ALL, { store: lost });
      await told(0);
      for (const id of ids) health.set(id, { ...UP, up: false, consecutiveFailures: 3 });
      await expect(told(MINUTE)).rejects.toThrow('the answer is lost');
      expect(await told(MINUTE)).toMatchObject([{ data: { count: 2 } }]);
    });

    it('stay due while the store cannot be asked what to tell', async () => {
      let isBroken = false;
      const store = storeWith(h.store.notifications, {
        token: async (of) => {
          if (isBroken) throw new StoreError('io', 'no disk');
          return await h.store.notifications.token(of);
        },
      });
      const { told, see, outbox } = start(ALL, { store });
      await told(0);
      await see('p', { x: 'COMPLETED' });
      const since = clock.now();
      isBroken = true;
      await expect(told(MINUTE)).rejects.toThrow('no disk');
      expect(outbox.oldestDueAt()).toBe(since);
      isBroken = false;
      expect(await told(MINUTE)).toMatchObject([{ data: { count: 1 } }]);
    });

    it('change nothing if another worker has composed meanwhile', async () => {
      await start().told(0);
      const slow = storeWith(h.store.notifications, {
        compose: async (composed) => {
          await start().told(MINUTE);
          return await h.store.notifications.compose(composed);
        },
      });
      const { told, see } = start(ALL, { store: slow });
      await told(0);
      await see('p', { x: 'COMPLETED', y: 'PENDING' });
      expect(await told(MINUTE)).toEqual([]);
      clock.advance(2 * HOUR);
      expect(await told(MINUTE)).toEqual([]);
      health.set('p', { ...UP, up: false, consecutiveFailures: 3 });
      expect(await told(MINUTE)).toEqual([]);
      expect(await start().told(2 * MINUTE)).toEqual([]);
    });

    it('tell a move that comes while another process is found to have told those before', async () => {
      const others: (() => Promise<unknown>)[] = [];
      const slow = storeWith(h.store.notifications, {
        dueMoves: async (query) => {
          const found = await h.store.notifications.dueMoves(query);
          await others.pop()?.();
          return found;
        },
      });
      const { told, see } = start(ALL, { store: slow });
      await told(0);
      await see('p', { x: 'COMPLETED' });
      expect(await start().told(MINUTE)).toMatchObject([{ data: { count: 1 } }]);
      others.push(async () => await see('p', { x: 'COMPLETED', y: 'COMPLETED' }));
      expect(await told(2 * MINUTE)).toMatchObject([{ data: { prompts: [{ prompt_id: 'y' }] } }]);
    });

    it('are stored by one of several processes at the same moment', async () => {
      const { notifications } = h.store;
      await notifications.subscribe(ALL, START);
      const of = { receiver: 'chat', kind: 'down' } as const;
      const token = (await notifications.token(of)) ?? '';
      const composing = ['p', 'q', 'p', 'q'].map((project, index) => {
        const timestamp = new Date(START).toISOString();
        const head = { schema: 1, id: String(index), timestamp } as const;
        return notifications.compose({
          ...of,
          token,
          told: [{ project, promptId: '', mark: 1 }],
          message: { ...head, type: 'test', data: { receiver: 'chat' } },
        });
      });
      const stored = await Promise.all(composing);
      expect(stored.filter(Boolean)).toHaveLength(1);
      expect(await notifications.messages('chat')).toMatchObject([
        { message: { id: String(stored.indexOf(true)) } },
      ]);
      expect((await notifications.toldProjects(of)).size).toBe(1);
    });

    it('are sent by the owner of the project, also those that another worker has composed', async () => {
      const owner = { of: 'one' };
      const worker = (name: string) => start(ALL, { mayTell: () => owner.of === name });
      const [one, two] = [worker('one'), worker('two')];
      await one.told(0);
      await two.told(0);
      await one.see('p', { x: 'COMPLETED' });
      const message = await one.next();
      expect(message).toBeDefined();
      clock.advance(SECOND);
      await one.see('p', { x: 'COMPLETED', y: 'COMPLETED' });
      owner.of = 'two';
      expect(await two.next()).toBeUndefined();
      two.outbox.observe({ type: 'worker.claimed', worker: 'two', projects: 2, owned: 2 });
      expect(await one.next()).toBeUndefined();
      expect(await two.next()).toEqual(message);
      expect(await two.told(2 * MINUTE)).toMatchObject([
        { id: message?.id },
        { data: { prompts: [{ prompt_id: 'y' }] } },
      ]);
      owner.of = 'one';
      one.outbox.observe({ type: 'worker.claimed', worker: 'one', projects: 2, owned: 2 });
      expect(await one.told(2 * MINUTE)).toEqual([]);
    });

    it('tell each finish once, with what it took and why prompts failed, and none of before', async () => {
      const before = start();
      const started = { a: ['RUNNING', 'old'], b: ['RUNNING', 'old'] } as const;
      const ended = { a: ['COMPLETED', 'old'], b: ['COMPLETED', 'old'] } as const;
      for (const items of [started, ended, ended]) await before.show('p', items);
      const { told, show, settle: settleAll } = start(FINISHED);
      expect(await told(2 * MINUTE)).toEqual([]);

      const items = (c: string, d: string, e: string): Items => {
        return { ...ended, c: [c, 'new'], d: [d, 'new'], e: [e, 'new'] };
      };
      await show('p', items('RUNNING', 'RUNNING', 'RUNNING'));
      const first = clock.now();
      await settleAll('p', await show('p', items('FAILED', 'FAILED', 'RUNNING')), 'lost line 7');
      clock.advance(41 * MINUTE);
      // One of them runs again.
      await show('p', items('FAILED', 'RUNNING', 'RUNNING'));
      await settleAll('p', await show('p', items('FAILED', 'COMPLETED', 'FAILED')), 'x');
      const last = clock.now();
      expect(await told(2 * MINUTE)).toEqual([]);
      await show('p', items('FAILED', 'COMPLETED', 'FAILED'));
      expect(await told(SECOND)).toMatchObject([
        {
          type: 'experiments.finished',
          data: {
            project: 'p',
            team: 'search',
            url: 'https://watch.example.com/projects/p',
            count: 1,
            experiments: [
              {
                experiment: 'new',
                url: 'https://watch.example.com/projects/p/experiments/new',
                first_move: new Date(first).toISOString(),
                ended: new Date(last).toISOString(),
                duration_seconds: 41 * 60,
                prompts: { COMPLETED: 1, FAILED: 2, UNKNOWN: 0 },
                causes: [
                  { error_id: 'TIMEOUT', shape: 'x', count: 1 },
                  { error_id: 'TIMEOUT', shape: 'lost line <*>', count: 1 },
                ],
              },
            ],
          },
        },
      ]);
      await show('p', items('FAILED', 'COMPLETED', 'FAILED'));
      expect(await told(2 * MINUTE)).toEqual([]);
      expect(await start(FINISHED).told(2 * MINUTE)).toEqual([]);
    });

    it('gather finishes, name the first of them, and tell one again that was reopened', async () => {
      const { told, show } = start(FINISHED);
      await told(0);
      const all = (status: string): Items => {
        const names = Array.from({ length: 12 }, (_, index) => `${index} <b>/../%\u0001`);
        return Object.fromEntries(names.map((name, index) => [`x${index}`, [status, name]]));
      };
      await show('p', all('RUNNING'));
      for (let poll = 0; poll < 2; poll += 1) await show('p', all('COMPLETED'));
      const [message, ...others] = await told(MINUTE);
      expect(others).toEqual([]);
      const { count, experiments } = (message as MessageOf<'experiments.finished'>).data;
      expect([count, experiments.length]).toEqual([12, 10]);
      expect(experiments[0]).toMatchObject({
        experiment: '0 <b>/../%\u0001',
        url: 'https://watch.example.com/projects/p/experiments/0%20%3Cb%3E%2F..%2F%25%01',
        causes: [],
      });
      await show('p', { ...all('COMPLETED'), x1: ['RUNNING', '..'] });
      clock.advance(MINUTE);
      for (const status of ['COMPLETED', 'COMPLETED', 'RUNNING']) {
        await show('p', { ...all('COMPLETED'), x1: [status, '..'] });
      }
      expect(await told(2 * MINUTE)).toMatchObject([
        {
          data: { count: 1, experiments: [{ experiment: '..', url: null, duration_seconds: 60 }] },
        },
      ]);
      for (let poll = 0; poll < 2; poll += 1) {
        await show('p', { ...all('COMPLETED'), x1: ['COMPLETED', '..'] });
      }
      expect(await told(2 * MINUTE)).toMatchObject([
        { data: { count: 1, experiments: [{ experiment: '..', duration_seconds: 120 }] } },
      ]);
    });

    it('let a finish wait for the outcomes of failures, for a minute at most', async () => {
      const { told, show, settle: settleAll } = start(FINISHED);
      await told(0);
      const items = (a: string, b: string): Items => ({ a: [a, 'e'], b: [b, 'f'] });
      await show('p', items('RUNNING', 'RUNNING'));
      const failures = await show('p', items('FAILED', 'RUNNING'));
      await show('p', items('FAILED', 'RUNNING'));
      expect(await told(30 * SECOND)).toEqual([]);
      await settleAll('p', failures);
      expect(await told(3 * SECOND)).toMatchObject([
        { data: { experiments: [{ experiment: 'e', causes: [{ count: 1 }] }] } },
      ]);
      clock.advance(MINUTE);
      for (let poll = 0; poll < 2; poll += 1) await show('p', items('FAILED', 'FAILED'));
      expect(await told(58 * SECOND)).toEqual([]);
      expect(await told(3 * SECOND)).toMatchObject([
        { data: { experiments: [{ experiment: 'f', prompts: { FAILED: 1 }, causes: [] }] } },
      ]);
    });

    it('lose no finish, and repeat the same message, whenever the process is killed', async () => {
      await start(FINISHED).told(0);
      const finish = async (name: string) => {
        // The process is killed before it is told of its own commit.
        for (const status of ['RUNNING', 'COMPLETED', 'COMPLETED']) {
          await pollItems(h.store, 'p', { [name]: [status, name] }, clock.now());
        }
      };
      await finish('one');
      const message = await start(FINISHED).next();
      expect(message).toMatchObject({ data: { experiments: [{ experiment: 'one' }] } });
      await finish('two');
      await h.reopen();
      await h.store.configureProjects(ids, clock.now());
      const { told, outbox } = start(FINISHED);
      expect(await told(0)).toEqual([message]);
      expect(await told(2 * MINUTE)).toMatchObject([
        { data: { count: 1, experiments: [{ experiment: 'two' }] } },
      ]);
      expect(outbox.oldestDueAt()).toBeUndefined();
      expect(await start(FINISHED).told(2 * MINUTE)).toEqual([]);
    });

    it('give up finishes that are a day old, and tell none of a project that the filter did not have', async () => {
      const narrow = { ...FINISHED, projects: new Set(['q']) };
      const { told, show } = start(narrow);
      await told(0);
      for (const status of ['RUNNING', 'COMPLETED', 'COMPLETED']) {
        await show('p', { a: [status, 'e'] });
        await show('q', { a: [status, 'e'] });
      }
      clock.advance(25 * HOUR);
      expect(await start(narrow).told(2 * MINUTE)).toEqual([]);
      expect(givenUp).toEqual([[{ receiver: 'chat', kind: 'finished' }, 'q', 1]]);
      expect(await start(FINISHED).told(2 * MINUTE)).toEqual([]);
      expect(givenUp).toHaveLength(1);
      for (const status of ['RUNNING', 'FAILED', 'FAILED']) {
        await show('p', { a: [status, 'e'] });
      }
      expect(await start(FINISHED).told(2 * MINUTE)).toMatchObject([{ data: { count: 1 } }]);
    });

    it('tell stuck prompts once, and when they move on or are gone', async () => {
      const first = start();
      await first.told(0);
      await first.see('p', { a: 'PENDING', b: 'RUNNING', c: 'RUNNING' });
      expect(await first.told(HOUR)).toEqual([]);
      await first.see('p', { a: 'PENDING', b: 'RUNNING', c: 'RUNNING', d: 'RUNNING' });
      expect(await first.told(MINUTE)).toMatchObject([
        {
          type: 'prompts.stuck',
          data: {
            count: 3,
            prompts: [
              { prompt_id: 'a', status: 'PENDING', limit_seconds: 3600, until: null, to: null },
              { prompt_id: 'b', status: 'RUNNING', since: new Date(START).toISOString() },
              { prompt_id: 'c' },
            ],
          },
        },
      ]);
      expect(await first.told(30 * MINUTE)).toEqual([]);
      // Another process knows it too, and learns what happened meanwhile.
      await h.see('p', { a: 'PENDING', d: 'RUNNING', b: 'COMPLETED' }, clock.now());
      await h.see('p', { a: 'PENDING', d: 'RUNNING', b: 'COMPLETED' }, clock.now());
      const second = start({ ...ALL, on: ['stuck'] });
      expect(await second.told(20 * MINUTE)).toMatchObject([
        {
          type: 'prompts.recovered',
          data: {
            count: 2,
            prompts: [
              { prompt_id: 'b', status: 'RUNNING', to: 'COMPLETED' },
              { prompt_id: 'c', to: null },
            ],
          },
        },
      ]);
      expect(await second.told(20 * MINUTE)).toMatchObject([
        { type: 'prompts.stuck', data: { count: 1, prompts: [{ prompt_id: 'd' }] } },
      ]);
      await second.see('p', { a: 'RUNNING', d: 'RUNNING', b: 'COMPLETED' });
      expect(await second.told(MINUTE)).toMatchObject([
        { type: 'prompts.recovered', data: { prompts: [{ prompt_id: 'a', to: 'RUNNING' }] } },
      ]);
      // It is stuck again in its next status.
      expect(await second.told(2 * HOUR)).toMatchObject([
        { type: 'prompts.stuck', data: { prompts: [{ prompt_id: 'a', status: 'RUNNING' }] } },
      ]);
    });

    it('tell more stuck prompts than fit into a transaction in several messages', async () => {
      const { told, see } = start({ ...ALL, on: ['stuck'] });
      await told(0);
      const all = (status: string) =>
        Object.fromEntries(Array.from({ length: 4001 }, (_, index) => [`x${index}`, status]));
      await see('p', all('PENDING'));
      const counts = async () => {
        const messages = await told(2 * HOUR);
        return messages.map(({ type, data }) => [type, 'count' in data && data.count]);
      };
      expect(await counts()).toEqual([2000, 2000, 1].map((count) => ['prompts.stuck', count]));
      await see('p', all('COMPLETED'));
      expect(await counts()).toEqual([2000, 2000, 1].map((count) => ['prompts.recovered', count]));
    });

    it('do not call a prompt stuck while polls fail', async () => {
      const { told, see } = start({ ...ALL, on: ['stuck'] });
      await told(0);
      await see('p', { a: 'PENDING' });
      health.set('p', { ...UP, up: false, consecutiveFailures: 1 });
      expect(await told(3 * HOUR)).toEqual([]);
      health.delete('p');
      expect(await told(MINUTE)).toMatchObject([{ type: 'prompts.stuck' }]);
    });

    it('do not call a prompt stuck before the first poll after a pause', async () => {
      const { told, see } = start({ ...ALL, on: ['stuck'] });
      await told(0);
      await see('p', { a: 'PENDING' });
      health.set('p', polledAt(clock.now()));
      expect(await told(3 * HOUR)).toEqual([]);
      health.delete('p');
      expect(await told(MINUTE)).toMatchObject([{ type: 'prompts.stuck' }]);
    });

    it('tell after maintenance what is stuck no longer', async () => {
      let isQuiet = false;
      const { told, see } = start({ ...ALL, on: ['stuck'] }, { isQuiet: () => isQuiet });
      await told(0);
      await see('p', { a: 'PENDING' });
      expect(await told(2 * HOUR)).toMatchObject([{ type: 'prompts.stuck' }]);
      isQuiet = true;
      await see('p', { a: 'COMPLETED' });
      expect(await told(HOUR)).toEqual([]);
      isQuiet = false;
      expect(await told(MINUTE)).toMatchObject([{ type: 'prompts.recovered' }]);
    });

    it('do not call a project down for one failed poll after a long time without any', async () => {
      const { told } = start({ ...ALL, on: ['down'] });
      health.set('p', polledAt(START));
      await told(0);
      clock.advance(HOUR);
      const failed = { ...polledAt(START), up: false };
      for (const consecutiveFailures of [1, 2]) {
        health.set('p', { ...failed, consecutiveFailures, lastPollAt: clock.now() });
        expect(await told(25 * SECOND)).toEqual([]);
      }
      health.set('p', { ...failed, consecutiveFailures: 3, lastPollAt: clock.now() });
      expect(await told(MINUTE)).toMatchObject([{ type: 'projects.down' }]);
    });

    it('tell all projects of an outage in one message, and when they are polled again', async () => {
      ids = Array.from({ length: 100 }, (_, index) => `p${String(index).padStart(2, '0')}`);
      await h.store.configureProjects(ids, START - HOUR);
      const { told } = start();
      await told(0);
      const lastSuccessAt = clock.now();
      const failure = { message: '', statusCode: 503, url: undefined, location: undefined };
      const down = (id: string, polls: number): PollHealth => ({
        ...UP,
        up: false,
        consecutiveFailures: polls,
        reason: 'server_error',
        failure: { ...failure, detail: 'd'.repeat(500) },
        lastSuccessAt: lastSuccessAt + Number(id.slice(1)),
      });
      for (const id of ids) health.set(id, down(id, 2));
      expect(await told(5 * MINUTE)).toEqual([]);
      for (const id of ids.slice(50)) health.set(id, down(id, 3));
      expect(await told(20 * SECOND)).toEqual([]);
      for (const id of ids) health.set(id, down(id, 3));
      expect(await told(2 * MINUTE)).toMatchObject([
        {
          type: 'projects.down',
          data: { url: 'https://watch.example.com/', count: 100 },
        },
      ]);
      const restarted = start();
      expect(await restarted.told(HOUR)).toEqual([]);
      const again = clock.now();
      const up = { ...UP, lastSuccessAt: again + 5 * SECOND, steadySince: again };
      for (const id of ids.slice(50)) health.set(id, up);
      expect(await restarted.told(20 * SECOND)).toEqual([]);
      for (const id of ids) health.set(id, up);
      const [message, ...others] = await restarted.told(2 * MINUTE);
      expect(others).toEqual([]);
      expect(message).toMatchObject({
        type: 'projects.up',
        data: {
          count: 100,
          projects: Array.from({ length: 20 }, (_, index) => ({
            project: ids[index],
            since: new Date(lastSuccessAt + index).toISOString(),
            until: new Date(again).toISOString(),
            reason: null,
          })),
        },
      });
      expect(await restarted.told(MINUTE)).toEqual([]);
    });

    it('say why a project is down, and call one that is not polled down as well', async () => {
      const { told } = start({ ...ALL, on: ['down'] });
      await told(0);
      const failure = { message: '', statusCode: 401, url: undefined, location: undefined };
      health.set('p', {
        ...UP,
        up: false,
        consecutiveFailures: 9,
        reason: 'auth',
        failure: { ...failure, detail: 'd'.repeat(500) },
        lastSuccessAt: undefined,
      });
      expect(await told(MINUTE)).toMatchObject([
        {
          data: {
            count: 1,
            projects: [
              {
                project: 'p',
                since: new Date(START - HOUR).toISOString(),
                reason: 'auth',
                status_code: 401,
                detail: `${'d'.repeat(299)}…`,
              },
            ],
          },
        },
      ]);
      health.set('q', { ...UP, lastSuccessAt: clock.now() });
      expect(await told(5 * MINUTE)).toEqual([]);
      expect(await told(MINUTE)).toMatchObject([
        { data: { count: 1, projects: [{ project: 'q', reason: null }] } },
      ]);
    });

    it('do not call a project down that no process polled', async () => {
      await start().told(0);
      health.set('p', { ...UP, lastSuccessAt: START });
      clock.advance(24 * HOUR);
      const { told } = start();
      expect(await told(40 * SECOND)).toEqual([]);
      // Nor does this one.
      expect(await told(MINUTE)).toMatchObject([{ type: 'projects.down' }]);
    });

    it('give up what is a day old, and go on with the rest', async () => {
      const { told, see, next, outbox } = start();
      await told(0);
      await see('p', { a: 'COMPLETED' });
      expect(outbox.oldestDueAt()).toBe(START);
      const waiting = await next();
      await see('p', { a: 'COMPLETED', b: 'COMPLETED', c: 'COMPLETED' });
      await see('q', { d: 'COMPLETED' });
      clock.advance(25 * HOUR);
      await see('p', { a: 'COMPLETED', b: 'COMPLETED', c: 'COMPLETED', e: 'COMPLETED' });
      const messages = await told(5 * MINUTE);
      expect(messages).toMatchObject([
        { id: waiting?.id },
        { data: { project: 'p', count: 1, prompts: [{ prompt_id: 'e' }] } },
      ]);
      expect(new Set(givenUp)).toEqual(
        new Set([
          [{ receiver: 'chat', kind: 'completed' }, 'p', 2],
          [{ receiver: 'chat', kind: 'completed' }, 'q', 1],
        ]),
      );
      expect(outbox.oldestDueAt()).toBeUndefined();
    });

    it('tell nothing that moved in maintenance, and give nothing up', async () => {
      const until = clock.now() + HOUR;
      const { see, settle: explain, told } = start(ALL, { untoldUntil: () => until });
      await told(MINUTE);
      await explain('p', await see('p', { a: 'FAILED' }));
      expect(await told(5 * MINUTE)).toEqual([]);
      clock.advance(until - clock.now());
      await explain('p', await see('p', { a: 'FAILED', b: 'FAILED' }));
      expect(await told(5 * MINUTE)).toMatchObject([{ data: { prompts: [{ prompt_id: 'b' }] } }]);
      expect(givenUp).toEqual([]);
    });

    it('say what the first poll after a pause saw', async () => {
      const { outbox, see, show, told } = start({ ...ALL, on: ['completed', 'finished'] });
      const resume = () =>
        outbox.observe({
          type: 'project.resumed',
          project: 'p',
          since: undefined,
          at: clock.now(),
          transitions: 1,
        });
      const saw = async () =>
        (await told(2 * MINUTE)).map(({ data }) => 'after_pause' in data && data.after_pause);
      await told(0);
      resume();
      await see('p', { a: 'COMPLETED' });
      await see('q', { a: 'COMPLETED' });
      clock.advance(SECOND);
      await see('p', { a: 'COMPLETED', b: 'COMPLETED' });
      expect(await saw()).toEqual([true, false]);
      await see('p', { a: 'COMPLETED', b: 'COMPLETED', c: 'COMPLETED' });
      expect(await saw()).toEqual([false]);

      // An experiment finishes a poll after it has ended.
      await show('p', { x: ['RUNNING', 'nightly'] });
      resume();
      await show('p', { x: ['FAILED', 'nightly'] });
      clock.advance(SECOND);
      await show('p', { x: ['FAILED', 'nightly'] });
      expect(await saw()).toEqual([true]);
    });

    it('give up what was a day old before the process began', async () => {
      await start().told(0);
      const before = start();
      await before.see('p', { x: 'FAILED' });
      await before.see('q', { y: 'FAILED' });
      clock.advance(3 * 24 * HOUR);
      await before.see('q', { y: 'FAILED', z: 'FAILED' });
      expect(await start({ ...ALL, on: ['failed'] }).told(5 * MINUTE)).toMatchObject([
        { data: { project: 'q', count: 1, prompts: [{ prompt_id: 'z' }] } },
      ]);
      expect(new Set(givenUp)).toEqual(
        new Set([
          [{ receiver: 'chat', kind: 'failed' }, 'p', 1],
          [{ receiver: 'chat', kind: 'failed' }, 'q', 1],
        ]),
      );
    });

    it('begin anew with a receiver that the store has lost', async () => {
      const read: string[] = [];
      const counting = new Proxy(h.store.notifications, {
        get: (target, name) => {
          if (read.push(String(name)) > 1000) throw new Error('reads without end');
          return Reflect.get(target, name) as unknown;
        },
      });
      const { told, see } = start(ALL, { store: counting });
      await told(0);
      await see('p', { a: 'COMPLETED' });
      const receivers = { at: clock.now() + 25 * HOUR, configured: [] };
      await h.store.prune({ before: 0, firstDay: 0, receivers });
      expect(await told(2 * MINUTE)).toEqual([]);
      await see('p', { a: 'COMPLETED', b: 'COMPLETED' });
      expect(await told(MINUTE)).toMatchObject([{ data: { count: 1 } }]);
    });

    it('let no failure wait for more than a minute after the clock was set back', async () => {
      const { told, see } = start();
      await told(0);
      await see('p', { x: 'FAILED' });
      clock.set(START - HOUR);
      expect(await told(2 * MINUTE)).toMatchObject([{ data: { count: 1 } }]);
    });

    it('tell a receiver nothing of the past of a project that its filter did not have', async () => {
      const narrow = start({ ...ALL, projects: new Set(['q']) });
      await narrow.told(0);
      await narrow.see('p', { x: 'COMPLETED' });
      clock.advance(25 * HOUR);
      await narrow.see('p', { x: 'COMPLETED', y: 'COMPLETED' });
      const { told, see } = start();
      expect(await told(2 * MINUTE)).toEqual([]);
      expect(givenUp).toEqual([]);
      await see('p', { x: 'COMPLETED', y: 'COMPLETED', z: 'COMPLETED' });
      expect(await told(2 * MINUTE)).toMatchObject([{ data: { count: 1 } }]);
      // What is known of other projects goes on where it was.
      await see('q', { x: 'COMPLETED' });
      expect(await start({ ...ALL, teams: new Set(['search']) }).told(2 * MINUTE)).toMatchObject([
        { data: { project: 'q', count: 1 } },
      ]);
    });

    it('tell a receiver only of its projects', async () => {
      const { told, see } = start({ ...ALL, projects: new Set(['q']) });
      await told(0);
      await see('p', { x: 'COMPLETED' });
      await see('q', { x: 'COMPLETED' });
      expect(await told(5 * MINUTE)).toMatchObject([{ data: { project: 'q' } }]);
    });

    it('cost no reads while nothing happens', async () => {
      const read: string[] = [];
      const counting = new Proxy(h.store.notifications, {
        get: (target, name) => {
          if (name !== 'snapshot') read.push(String(name));
          return Reflect.get(target, name) as unknown;
        },
      });
      const { told, see } = start(ALL, { store: counting });
      await told(0);
      await see('p', { a: 'PENDING' });
      await told(2 * HOUR);
      read.length = 0;
      expect(await told(50 * MINUTE)).toEqual([]);
      expect(read).toEqual([]);
    });

    it('leave nothing of a project that is deleted', async () => {
      const { told, see, next } = start();
      await told(0);
      await see('p', { a: 'PENDING', b: 'COMPLETED' });
      await told(2 * HOUR);
      await see('p', { a: 'PENDING', b: 'COMPLETED', c: 'COMPLETED' });
      expect(await next()).toBeDefined();
      await h.store.configureProjects(['q'], clock.now());
      await h.store.prune({ before: clock.now() + 1, firstDay: 0 });
      const { notifications } = h.store;
      expect(await notifications.messages('chat')).toEqual([]);
      expect(await withStuck()).toEqual([]);
      await h.store.configureProjects(['p', 'q'], clock.now());
      expect(await start().told(2 * MINUTE)).toEqual([]);
    });

    it('forget a receiver that was not configured for a day', async () => {
      const { told, see, next } = start();
      await told(0);
      await see('p', { a: 'PENDING' });
      await told(2 * HOUR);
      await see('p', { a: 'PENDING', b: 'COMPLETED' });
      const message = await next();
      expect(message).toBeDefined();
      const prune = (configured: readonly Subscriber[]) =>
        h.store.prune({ before: 0, firstDay: 0, receivers: { at: clock.now(), configured } });
      await prune([ALL]);
      clock.advance(24 * HOUR);
      await prune([]);
      // Another worker may still have the configuration before.
      const { notifications } = h.store;
      expect(await notifications.messages('chat')).toHaveLength(1);
      expect(await withStuck()).toEqual(['p']);
      clock.advance(1);
      await prune([{ ...ALL, on: ['failed'] }]);
      expect(await withStuck()).toEqual([]);
      clock.advance(24 * HOUR + 1);
      await prune([]);
      expect(await notifications.messages('chat')).toEqual([]);
      expect(await notifications.token({ receiver: 'chat', kind: 'down' })).toBeUndefined();
      // It is a new one.
      expect(await start().told(0)).toMatchObject([{ type: 'prompts.stuck' }]);
    });
  });
}

function projectOf(id: string): ConfiguredProject {
  const limits = { PENDING: 'auto', RUNNING: 'auto' } as const;
  return { id, team: 'search', datasets: false, expect: { limits, maxFailureRatio: undefined } };
}

function failedEvent(project: string, transitionId: number): MonitorEvent {
  const prompt = { promptId: 'x', promptName: undefined, errorInfo: null, cause: '' };
  const more = { errorMsgTruncated: false, reason: undefined };
  return { type: 'prompt.failed', project, transitionId, ...prompt, ...more };
}

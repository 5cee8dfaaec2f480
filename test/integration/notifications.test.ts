import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { Message, MessageOf } from '../../src/notify/message.ts';
import { startHere } from '../support/daemon-here.ts';
import { PATIENCE, startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { startReceiver } from '../support/receivers.ts';
import { scrape } from '../support/scrape.ts';
import { errorOf, startAlpha } from '../support/service.ts';

/** Status of an answer; `hang` to give none. */
type Answer = number | 'hang';

/** Starts a receiver of type `webhook`, which answers 200 unless `answer` is set; `await using` closes it. */
async function startHook() {
  const open = new Set<ServerResponse>();
  const hook = { answer: 200 as Answer, open };
  const receiver = await startReceiver((response) => {
    open.add(response);
    response.once('close', () => open.delete(response));
    if (hook.answer !== 'hang') response.writeHead(hook.answer).end();
  });
  const attempts = () => receiver.received.map(({ body }) => JSON.parse(body) as Message);
  return Object.assign(hook, {
    url: receiver.url,
    attempts,
    /** What it was sent about failures, once for each message. */
    told: () => {
      const byId = new Map(attempts().map((message) => [message.id, message]));
      return [...byId.values()].filter(isOfFailures);
    },
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  });
}

function isOfFailures(message: Message): message is MessageOf<'prompts.failed'> {
  return message.type === 'prompts.failed';
}

function idsIn(messages: readonly MessageOf<'prompts.failed'>[]): readonly string[] {
  return messages.flatMap(({ data }) => data.prompts.map(({ prompt_id }) => prompt_id));
}

function webhook(name: string, { url }: { readonly url: string }) {
  return { name, type: 'webhook', url, on: ['failed'] };
}

const all = (status: string) => Object.fromEntries(['a', 'b', 'c', 'd'].map((id) => [id, status]));

describe('messages to receivers', UNHURRIED, () => {
  it('arrive while others fail or hang, which are told afterwards, gathered; polls go on', async () => {
    await using service = await startAlpha();
    await using good = await startHook();
    await using failing = await startHook();
    await using hanging = await startHook();
    failing.answer = 500;
    hanging.answer = 'hang';
    service.set(all('RUNNING'));
    const notify = [
      webhook('good', good),
      webhook('failing', failing),
      webhook('hanging', hanging),
    ];
    await using place = await workspace(service.url, { notify });
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    service.set({ a: 'FAILED' });
    await vi.waitFor(() => expect(idsIn(good.told())).toEqual(['a']), PATIENCE);
    await daemon.line('notification.failed', { receiver: 'failing', status_code: 500 });
    // Each attempt hangs for 10 s.
    await daemon.line('notification.failed', { receiver: 'hanging' });
    for (const id of ['b', 'c', 'd']) {
      service.set({ [id]: 'FAILED' });
      await daemon.line('prompt.failed', { prompt_id: id });
    }
    await vi.waitFor(() => expect(idsIn(good.told())).toEqual(['a', 'b', 'c', 'd']), PATIENCE);
    expect(idsIn(failing.told())).toEqual(['a']);
    expect(idsIn(hanging.told())).toEqual(['a']);
    for (const receiver of ['failing', 'hanging']) {
      const begun = daemon
        .of('notification.failed')
        .filter((line) => line['receiver'] === receiver);
      expect(begun).toHaveLength(1);
    }
    const url = await daemon.url();
    const page = await (await fetch(url)).text();
    expect(page).toContain('1 work');
    expect(page).toContain('hanging has failed');
    const due = 'evalwatch_notification_oldest_due_timestamp_seconds';
    expect((await scrape(url)).value(due, { receiver: 'hanging' })).toBeGreaterThan(0);

    failing.answer = 200;
    hanging.answer = 200;
    for (const receiver of [failing, hanging]) {
      await vi.waitFor(
        () => expect(idsIn(receiver.told())).toEqual(['a', 'b', 'c', 'd']),
        PATIENCE,
      );
      const [first, second, ...others] = receiver.told();
      expect([first?.data.count, second?.data.count, others]).toEqual([1, 3, []]);
    }
    expect(good.told()[0]?.data.prompts[0]?.error_info).toEqual(errorOf('a'));
    for (const receiver of ['failing', 'hanging']) {
      await daemon.line('notification.recovered', { receiver });
    }
    await vi.waitFor(async () => {
      const series = await scrape(url);
      expect(series.value(due, { receiver: 'hanging' })).toBeUndefined();
      const labels = { receiver: 'hanging', outcome: 'sent' };
      expect(series.value('evalwatch_notifications_total', labels)).toBe(2);
    }, PATIENCE);
    expect(daemon.of('poll.failed')).toEqual([]);
  });

  it('come again after a kill before their answer, the same with the same id, and nothing else', async () => {
    await using service = await startAlpha();
    await using receiver = await startHook();
    receiver.answer = 'hang';
    service.set(all('RUNNING'));
    await using place = await workspace(service.url, { notify: [webhook('hook', receiver)] });
    await using killed = startDaemon(place);
    await killed.line('project.baseline');
    service.set({ a: 'FAILED' });
    await vi.waitFor(() => expect(idsIn(receiver.told())).toEqual(['a']), PATIENCE);
    await killed.stop('SIGKILL');
    receiver.answer = 200;
    const before = receiver.attempts().length;
    await using daemon = await startHere(place);
    service.set({ b: 'FAILED' });
    await vi.waitFor(() => expect(idsIn(receiver.told())).toEqual(['a', 'b']), PATIENCE);
    const repeated = receiver.attempts().slice(0, before + 1);
    expect(repeated).toEqual(repeated.map(() => receiver.attempts()[0]));
    await daemon.stop();
  });

  it('tell of an experiment that finished once, also after a kill before their answer', async () => {
    await using service = await startAlpha();
    await using receiver = await startHook();
    receiver.answer = 'hang';
    service.set({ old: 'RUNNING' }, 'old');
    await using place = await workspace(service.url, {
      notify: [{ ...webhook('hook', receiver), on: ['finished'] }],
      web: { external_url: 'https://watch.example.com' },
    });
    await using killed = startDaemon(place);
    await killed.line('project.baseline');
    service.set(all('RUNNING'), 'nightly 42');
    await killed.line('prompt.transition', { to: 'RUNNING' });
    service.set({ ...all('COMPLETED'), d: 'FAILED' });
    await vi.waitFor(() => expect(receiver.attempts()).not.toEqual([]), PATIENCE);
    await killed.stop('SIGKILL');
    receiver.answer = 200;
    const before = receiver.attempts().length;
    await using daemon = await startHere(place);
    service.set({ old: 'COMPLETED' });
    await vi.waitFor(() => expect(receiver.attempts().length).toBe(before + 2), PATIENCE);
    const [first] = receiver.attempts();
    expect(receiver.attempts().slice(0, -1)).toEqual(
      receiver
        .attempts()
        .slice(0, -1)
        .map(() => first),
    );
    const { error_id } = errorOf('d');
    expect(receiver.attempts()).toMatchObject([
      ...receiver
        .attempts()
        .slice(0, -1)
        .map(() => ({
          type: 'experiments.finished',
          data: {
            count: 1,
            experiments: [
              {
                experiment: 'nightly 42',
                url: 'https://watch.example.com/projects/alpha/experiments/nightly%2042',
                prompts: { COMPLETED: 3, FAILED: 1, UNKNOWN: 0 },
                causes: [{ error_id, count: 1 }],
              },
            ],
          },
        })),
      { data: { count: 1, experiments: [{ experiment: 'old', causes: [] }] } },
    ]);
    await daemon.stop();
  });

  it('that are on their way when the daemon stops are taken, and not sent again', async () => {
    await using service = await startAlpha();
    await using receiver = await startHook();
    receiver.answer = 'hang';
    service.set(all('RUNNING'));
    await using place = await workspace(service.url, { notify: [webhook('hook', receiver)] });
    await using daemon = await startHere(place, { speed: 1 });
    await daemon.line('project.baseline');
    service.set({ a: 'FAILED' });
    await vi.waitFor(() => expect(receiver.open.size).toBe(1), PATIENCE);
    const stopped = daemon.stop();
    // Everything else has ended by then.
    await setTimeout(1000);
    for (const response of receiver.open) response.end();
    await stopped;
    receiver.answer = 200;
    await using next = await startHere(place);
    service.set({ b: 'FAILED' });
    await vi.waitFor(() => expect(idsIn(receiver.told())).toEqual(['a', 'b']), PATIENCE);
    expect(receiver.attempts()).toHaveLength(2);
    await next.stop();
  });

  it('go to the receivers of the configuration in force, which are told nothing of before', async () => {
    await using service = await startAlpha();
    await using old = await startHook();
    await using other = await startHook();
    service.set(all('RUNNING'));
    await using place = await workspace(service.url, { notify: [webhook('old', old)] });
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    service.set({ a: 'FAILED' });
    await vi.waitFor(() => expect(idsIn(old.told())).toEqual(['a']), PATIENCE);
    await place.configure({ notify: [webhook('other', other)] });
    expect(await daemon.reload()).toEqual({ ok: true, reasons: [] });
    service.set({ b: 'FAILED' });
    await vi.waitFor(() => expect(idsIn(other.told())).toEqual(['b']), PATIENCE);
    expect(idsIn(old.told())).toEqual(['a']);
    // Under the same name, it goes on where it was.
    await place.configure({ notify: [webhook('old', old)] });
    await daemon.reload();
    await vi.waitFor(() => expect(idsIn(old.told())).toEqual(['a', 'b']), PATIENCE);
  });
});

import { describe, expect, it } from 'vitest';
import { cutTo, headline, plain, wordingOf } from '../../../src/notify/wording.ts';
import * as all from './messages.ts';
import type { Message } from '../../../src/notify/message.ts';

const titleOf = (message: Message) => plain(headline(wordingOf(message)));
const itemsOf = (message: Message) =>
  wordingOf(message).items.map(({ head, body }) => `${plain(head)} | ${plain(body)}`);

describe('cutTo', () => {
  it.each([
    ['abcd', 'abcd'],
    ['abcde', 'abc…'],
    ['ab😀', 'ab😀'],
    ['ab😀e', 'ab…'],
    ['a😀de', 'a😀…'],
  ])('cuts %j without half a character', (text, expected) => {
    expect(cutTo(text, 4)).toBe(expected);
  });
});

describe('headline', () => {
  it.each([
    [all.failed, '3 prompts of checkout-bot failed: OUTPUT_PARSE_ERROR 2, TIMEOUT 1'],
    [all.completed, '1 prompt of checkout-bot completed'],
    [all.stuck, '2 prompts of checkout-bot are stuck: RUNNING longer than 4 h'],
    [all.recovered, '1 prompt of checkout-bot is no longer stuck'],
    [
      all.finished,
      'nightly-42 of checkout-bot finished after 41 min: 38 completed, 2 failed (OUTPUT_PARSE_ERROR 2)',
    ],
    [all.severalFinished, '12 experiments of checkout-bot finished'],
    [
      all.down,
      'checkout-bot has had no successful poll since 14:02 UTC (5 min): the service refuses the API key (401)',
    ],
    [
      all.up,
      'checkout-bot is polled again: no successful poll from 14:02 UTC to 14:06 UTC (4 min)',
    ],
    [
      all.allDown,
      '112 projects have had no successful poll for up to 5 min: the service reports an internal error (503)',
    ],
    [all.test, 'Test message to search-chat: messages of evalwatch arrive here'],
  ])('of %#', (message, expected) => {
    expect(titleOf(message)).toBe(expected);
  });

  const seen = 'seen by the first poll after a pause';
  it.each([
    [all.failed, `failed: OUTPUT_PARSE_ERROR 2, TIMEOUT 1; ${seen}`],
    [all.completed, `completed: ${seen}`],
    [all.finished, `38 completed, 2 failed (OUTPUT_PARSE_ERROR 2); ${seen}`],
    [all.severalFinished, `finished: ${seen}`],
  ])('of what a poll saw after a pause: %#', ({ data, ...message }, expected) => {
    const told = { ...message, data: { ...data, after_pause: true } } as Message;
    expect(titleOf(told).slice(-expected.length)).toBe(expected);
  });

  const causes = (...counts: readonly (readonly [string | null, number])[]) =>
    counts.map(([error_id, count], index) => ({
      cause: String(index),
      error_id,
      shape: '',
      count,
    }));

  it.each([
    [causes(['A', 3]), 3, 'A'],
    [causes(['A', 1], ['A', 1]), 3, 'A 2, other 1'],
    [causes([null, 2], ['A', 9]), 11, 'A 9, no error_id 2'],
    [causes(['A', 4000], ['B', 3], ['C', 2], ['D', 1]), 4100, 'A 4,000, B 3, C 2, other 95'],
    [causes(), 3, ''],
  ])('counts the error_ids of %#', (found, count, expected) => {
    const message = { ...all.failed, data: { ...all.failed.data, causes: found, count } };

    expect(plain(wordingOf(message).why)).toBe(expected);
  });

  it('has the date of a time of another day', () => {
    const [first] = all.down.data.projects;
    const data = { ...all.down.data, projects: [{ ...first!, since: '2026-11-27T23:30:00.000Z' }] };

    expect(titleOf({ ...all.down, data })).toContain('since 2026-11-27 23:30 UTC (1 d 14 h): ');
  });

  it('has no reason if the projects have several, but each project has its own', () => {
    const [first] = all.down.data.projects;
    const projects = [
      first!,
      {
        ...first!,
        project: 'b',
        since: '2026-11-29T14:05:00.000Z',
        reason: 'timeout',
        status_code: null,
      },
    ];
    const message = { ...all.down, data: { ...all.down.data, count: 2, projects } } as Message;

    expect(titleOf(message)).toBe('2 projects have had no successful poll for up to 5 min');
    expect(itemsOf(message)).toEqual([
      'checkout-bot (search) since 14:02 UTC (5 min) | The service refuses the API key (401)',
      'b (search) since 14:05 UTC (2 min) | The service does not answer in time',
    ]);
  });
});

describe('items', () => {
  it('say which prompt failed when and why', () => {
    expect(itemsOf(all.failed)).toEqual([
      'Refund of a partial delivery (p-1841) at 14:06 UTC | OUTPUT_PARSE_ERROR: The judge returned no JSON after 3 attempts:⏎"I am sorry, but I cannot rate this."',
      'Voucher and card in one payment (p-1842) at 14:06 UTC | TIMEOUT: No answer of gpt-judge-2 within 120 s',
      'p-1850 at 14:06 UTC | OUTPUT_PARSE_ERROR: The judge returned no JSON after 3 attempts:⏎"I am sorry, but I cannot rate this."',
    ]);
  });

  it.each([
    [null, 'not_found', 'No error_info: the service no longer has the prompt (404)'],
    [null, null, 'Its error_info is not known yet'],
    [{ error_id: null, error_msg: 'lost' }, null, 'lost'],
    [{ error_id: 'E1', error_msg: null }, null, 'E1'],
    [{ error_id: null, error_msg: null }, null, 'no error_id, no message'],
  ] as const)('explain %j, %j', (error_info, reason, expected) => {
    const prompts = [{ ...all.failed.data.prompts[0]!, error_info, reason }];
    const message = { ...all.failed, data: { ...all.failed.data, count: 1, prompts } };

    expect(plain(wordingOf(message).items[0]?.body ?? [])).toBe(expected);
  });

  it('say since when a prompt is stuck, and how long it was', () => {
    expect(itemsOf(all.stuck)[1]).toBe('p-9 | RUNNING since 10:02 UTC (4 h 5 min), limit 4 h');
    expect(itemsOf(all.recovered)).toEqual([
      'Refund of a partial delivery (p-1841) | RUNNING from 10:02 UTC to 14:06 UTC (4 h 4 min), then COMPLETED',
    ]);
  });

  it('show that a text was cut', () => {
    const prompts = [{ ...all.failed.data.prompts[0]!, prompt_name: '😀'.repeat(500) }];
    const message = { ...all.failed, data: { ...all.failed.data, prompts } };

    expect(itemsOf(message)[0]).toContain(`${'😀'.repeat(100)}… (p-1841)`);
  });

  it('are followed by the number of the others, with all failures by cause', () => {
    const message = { ...all.failed, data: { ...all.failed.data, count: 10_000 } };

    expect(wordingOf(message).more(3).map(plain)).toEqual([
      'and 9,997 more',
      'All by cause:',
      '2 × OUTPUT_PARSE_ERROR: The judge returned no JSON after <*> attempts',
      '1 × TIMEOUT: No answer of <*> within <*>',
      '9,997 × another cause, or not known yet',
    ]);
    expect(wordingOf(all.failed).more(3)).toEqual([]);
  });

  it('of a single experiment are its causes, with those that are not known', () => {
    const [experiment] = all.finished.data.experiments;
    const of = (prompts: object, causes = experiment!.causes) => {
      const experiments = [
        { ...experiment!, prompts: { ...experiment!.prompts, ...prompts }, causes },
      ];
      const wording = wordingOf({ ...all.finished, data: { ...all.finished.data, experiments } });
      return [plain(wording.why), wording.mood, ...wording.more(wording.items.length).map(plain)];
    };

    expect(itemsOf(all.finished)).toEqual([
      '2 × OUTPUT_PARSE_ERROR: The judge returned no JSON after <*> attempts | ',
    ]);
    expect(of({})).toEqual(['38 completed, 2 failed (OUTPUT_PARSE_ERROR 2)', 'bad']);
    expect(of({ FAILED: 5 })).toEqual([
      '38 completed, 5 failed (OUTPUT_PARSE_ERROR 2, other 3)',
      'bad',
      '3 × another cause, or not known yet',
    ]);
    expect(of({ FAILED: 5 }, [])).toEqual(['38 completed, 5 failed', 'bad']);
    expect(of({ FAILED: 0 }, [])).toEqual(['38 completed', 'good']);
    expect(of({ COMPLETED: 0, FAILED: 0, UNKNOWN: 1 }, [])).toEqual(['1 unknown', 'good']);
  });

  it('of several experiments are what each took and how it ended', () => {
    expect(itemsOf(all.severalFinished)).toEqual([
      'nightly-42 after 41 min | 38 completed, 2 failed (OUTPUT_PARSE_ERROR 2)',
      'smoke | 1 completed',
      'weekly after 41 min | 1,200 failed (TIMEOUT 1, other 1,199), 3 unknown',
    ]);
    expect(wordingOf(all.severalFinished).more(3).map(plain)).toEqual(['and 9 more']);
  });

  it('of a single project are what the service answered', () => {
    expect(itemsOf(all.down)).toEqual([
      'The service answered | invalid_token: the key has expired',
    ]);
  });
});

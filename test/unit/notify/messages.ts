import type { Message, MessageOf } from '../../../src/notify/message.ts';

const PAGE = 'https://evalwatch.example.com';
const PROMPTS = 'https://eval.example.com/prompts';

const envelope = {
  schema: 1,
  id: '0b9f7a52-3c1e-4d55-9a53-6a8d1f2c7e10',
  timestamp: '2026-11-29T14:07:12.000Z',
} as const;
const project = { project: 'checkout-bot', team: 'search', url: `${PAGE}/projects/checkout-bot` };
const parseError = {
  error_id: 'OUTPUT_PARSE_ERROR',
  error_msg: 'The judge returned no JSON after 3 attempts:\n"I am sorry, but I cannot rate this."',
};
const timeout = { error_id: 'TIMEOUT', error_msg: 'No answer of gpt-judge-2 within 120 s' };
const waiting = {
  prompt_id: 'p-1841',
  prompt_name: 'Refund of a partial delivery',
  url: `${PROMPTS}/p-1841`,
  status: 'RUNNING',
  since: '2026-11-29T10:02:11.000Z',
  limit_seconds: 4 * 3600,
  until: null,
  to: null,
} as const;

export const failed: MessageOf<'prompts.failed'> = {
  ...envelope,
  type: 'prompts.failed',
  data: {
    ...project,
    count: 3,
    after_pause: false,
    prompts: [
      {
        prompt_id: 'p-1841',
        prompt_name: 'Refund of a partial delivery',
        url: `${PROMPTS}/p-1841`,
        time: '2026-11-29T14:06:30.000Z',
        error_info: parseError,
        reason: null,
        cause: '00112233445566aa',
      },
      {
        prompt_id: 'p-1842',
        prompt_name: 'Voucher and card in one payment',
        url: `${PROMPTS}/p-1842`,
        time: '2026-11-29T14:06:30.000Z',
        error_info: timeout,
        reason: null,
        cause: '00112233445566bb',
      },
      {
        prompt_id: 'p-1850',
        prompt_name: null,
        url: null,
        time: '2026-11-29T14:06:30.000Z',
        error_info: parseError,
        reason: null,
        cause: '00112233445566aa',
      },
    ],
    causes: [
      {
        cause: '00112233445566aa',
        error_id: 'OUTPUT_PARSE_ERROR',
        shape: 'The judge returned no JSON after <*> attempts',
        count: 2,
      },
      {
        cause: '00112233445566bb',
        error_id: 'TIMEOUT',
        shape: 'No answer of <*> within <*>',
        count: 1,
      },
    ],
  },
};

export const completed: MessageOf<'prompts.completed'> = {
  ...envelope,
  type: 'prompts.completed',
  data: {
    ...project,
    count: 1,
    after_pause: false,
    prompts: [{ prompt_id: 'p-7', prompt_name: 'Price of a bundle', url: `${PROMPTS}/p-7` }],
  },
};

export const stuck: MessageOf<'prompts.stuck'> = {
  ...envelope,
  type: 'prompts.stuck',
  data: {
    ...project,
    count: 2,
    prompts: [waiting, { ...waiting, prompt_id: 'p-9', prompt_name: null, url: null }],
  },
};

export const recovered: Message = {
  ...envelope,
  type: 'prompts.recovered',
  data: {
    ...project,
    count: 1,
    prompts: [{ ...waiting, until: '2026-11-29T14:06:30.000Z', to: 'COMPLETED' }],
  },
};

const [, timeoutCause] = failed.data.causes;
const nightly = {
  experiment: 'nightly-42',
  url: `${PAGE}/projects/checkout-bot/experiments/nightly-42`,
  first_move: '2026-11-29T13:25:30.000Z',
  ended: '2026-11-29T14:06:30.000Z',
  duration_seconds: 41 * 60,
  prompts: { COMPLETED: 38, FAILED: 2, UNKNOWN: 0 },
  causes: failed.data.causes.slice(0, 1),
};

export const finished: MessageOf<'experiments.finished'> = {
  ...envelope,
  type: 'experiments.finished',
  data: { ...project, count: 1, after_pause: false, experiments: [nightly] },
};

export const severalFinished: MessageOf<'experiments.finished'> = {
  ...envelope,
  type: 'experiments.finished',
  data: {
    ...project,
    count: 12,
    after_pause: false,
    experiments: [
      nightly,
      {
        ...nightly,
        experiment: 'smoke',
        url: null,
        duration_seconds: 0,
        prompts: { COMPLETED: 1, FAILED: 0, UNKNOWN: 0 },
        causes: [],
      },
      {
        ...nightly,
        experiment: 'weekly',
        prompts: { COMPLETED: 0, FAILED: 1200, UNKNOWN: 3 },
        causes: timeoutCause ? [timeoutCause] : [],
      },
    ],
  },
};

const outage = {
  ...project,
  since: '2026-11-29T14:02:03.000Z',
  until: null,
  reason: 'auth',
  status_code: 401,
  detail: 'invalid_token: the key has expired',
} as const;

export const down: MessageOf<'projects.down'> = {
  ...envelope,
  type: 'projects.down',
  data: { url: PAGE, count: 1, projects: [outage] },
};

export const up: MessageOf<'projects.up'> = {
  ...envelope,
  type: 'projects.up',
  data: {
    url: PAGE,
    count: 1,
    projects: [{ ...outage, until: '2026-11-29T14:06:30.000Z' }],
  },
};

/** One outage for everything of a service. */
export const allDown: MessageOf<'projects.down'> = {
  ...envelope,
  type: 'projects.down',
  data: {
    url: PAGE,
    count: 112,
    projects: Array.from({ length: 20 }, (_, index) => ({
      ...outage,
      project: `project-${index}`,
      url: `${PAGE}/projects/project-${index}`,
      reason: 'server_error',
      status_code: 503,
      detail: null,
    })),
  },
};

export const test: Message = { ...envelope, type: 'test', data: { receiver: 'search-chat' } };

export const messages: readonly Message[] = [
  failed,
  completed,
  stuck,
  recovered,
  finished,
  severalFinished,
  down,
  up,
  allDown,
  test,
];

/** Texts that a receiver could take for its own syntax, or that are too long for it. */
export const HOSTILE = [
  '<!channel> <!here> <@U012AB3CD> <https://evil.example|Open in evalwatch>',
  '@channel @here @everyone @all <at>everyone</at>',
  '*bold* _italic_ ~strike~ `code` ``` # head [link](https://evil.example) ![](https://evil.example/x.png)',
  '`<!channel>`</code></strong><a href="https://evil.example">x</a><script>globalThis.hacked=1</script>',
  '"><img src=x onerror=globalThis.hacked=1>',
  '{{DATE(2020-01-01T00:00:00Z,SHORT)}} ${secret} {{constructor}}',
  'subject\r\nBcc: victim@evil.example\r\n\r\nbody',
  '\n.\r\nQUIT\r\n',
  '\u202Etxt.exe\u202C and \u2066isolated\u0000\u0007\u001B[31m\u2028',
  '\uD800 lone \uDC00',
  '',
  '   ',
  '\u3164\u200B\u2800',
  'שלום מרحبا',
  '👩‍👩‍👧‍👦'.repeat(100),
  '😀'.repeat(1000),
  '&'.repeat(300),
  'x'.repeat(65_536),
  '<'.repeat(65_536),
  '漢'.repeat(65_536),
  '\u202E\u0000\n"\\'.repeat(13_107),
] as const;

/** Returns each kind of message with this text in every place that a text from outside can take. */
export function withText(text: string): readonly Message[] {
  const url = `https://eval.example.com/prompts/${encodeURIComponent(text.toWellFormed()).slice(0, 100_000)}?a=1&b="<'`;
  const prompt = { prompt_id: text, prompt_name: `${text}-name`, url };
  const about = { project: text, team: text, url, count: 10_000 };
  const ten = <Each>(each: Each) => Array.from({ length: 10 }, () => each);
  const error = { error_id: text, error_msg: text };
  const causes = ten({ cause: text, error_id: text, shape: text, count: 1000 });
  const hostile = {
    ...nightly,
    experiment: text,
    url,
    causes: causes.map((each, index) => ({ ...each, error_id: `${index}${text}` })),
  };
  const bad = {
    ...outage,
    project: text,
    team: text,
    url,
    detail: text,
    reason: 'network',
  } as const;
  return [
    {
      ...failed,
      data: {
        ...about,
        after_pause: true,
        prompts: ten({
          ...prompt,
          time: envelope.timestamp,
          error_info: error,
          reason: null,
          cause: text,
        }),
        causes: hostile.causes,
      },
    },
    {
      ...envelope,
      type: 'prompts.completed',
      data: { ...about, after_pause: true, prompts: ten(prompt) },
    },
    { ...stuck, data: { ...about, prompts: ten({ ...waiting, ...prompt }) } },
    {
      ...envelope,
      type: 'prompts.recovered',
      data: { ...about, prompts: ten({ ...waiting, ...prompt, until: envelope.timestamp }) },
    },
    { ...finished, data: { ...about, count: 1, after_pause: true, experiments: [hostile] } },
    {
      ...finished,
      data: {
        ...about,
        after_pause: true,
        experiments: ten({ ...hostile, causes: hostile.causes.slice(0, 1) }),
      },
    },
    { ...down, data: { url, count: 1, projects: [bad] } },
    {
      ...down,
      data: {
        url,
        count: 10_000,
        projects: [...ten(bad), ...ten({ ...bad, reason: 'tls' as const })],
      },
    },
    { ...up, data: { url, count: 1, projects: [{ ...bad, until: envelope.timestamp }] } },
    { ...envelope, type: 'test', data: { receiver: text } },
  ];
}

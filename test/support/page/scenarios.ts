import type { Settlement } from '../../../src/domain/failure.ts';
import { randomNumbers } from '../../../proof/random.ts';
import { cleanUnicode } from '../../../src/domain/visible.ts';
import { BY_DEFAULT } from '../expected.ts';
import { HOUR, MINUTE, NIGHT, openPageWorld, SECOND, type PageWorld, type Shown } from './world.ts';

/** Creates a night with every trouble: two projects whose polls fail, a new one, failures, and prompts that wait long. */
export async function nightScenario(): Promise<PageWorld> {
  const world = await openPageWorld(NIGHT - 30 * HOUR);
  const { clock } = world;
  const projects = [
    'checkout-bot',
    'search-ranking',
    'support-triage',
    'fraud-review',
    'summaries',
  ];
  await world.configure(projects, { datasets: true });
  const random = randomNumbers(7);
  const prompts = new Map(projects.map((project) => [project, firstPrompts(project)]));
  for (let step = 0; step <= 29 * 12; step += 1) {
    clock.set(NIGHT - 29.5 * HOUR + step * 5 * MINUTE);
    for (const [project, shown] of prompts) {
      if (project === 'search-ranking' && step > 29 * 12 - 38) continue;
      for (const id of Object.keys(shown)) shown[id] = moved(shown[id] ?? 'PENDING', random());
      if (random() < 0.2) shown[`${project}-${1000 + step}`] = 'PENDING';
      if (project === 'summaries') shown['summaries-7'] = 'RUNNING';
      if (project === 'fraud-review') shown['fraud-review-3'] = 'PENDING';
      await world.see(project, inExperiments(shown));
    }
  }
  await world.see('fraud-review', { labels: 'COMPLETED', holdout: 'RUNNING' }, 'dataset');
  clock.set(NIGHT - 95 * SECOND);
  const checkout = { ...prompts.get('checkout-bot'), 'checkout-bot-1007': 'RUNNING' };
  await world.see('checkout-bot', inExperiments(checkout));
  clock.set(NIGHT - 40 * SECOND);
  await world.see('checkout-bot', inExperiments({ ...checkout, 'checkout-bot-1007': 'FAILED' }));
  await world.settle(() => ERRORS[Math.floor(random() * ERRORS.length)]);
  clock.set(NIGHT - 12 * SECOND);
  await world.see(
    'checkout-bot',
    inExperiments({ ...checkout, 'checkout-bot-1007': 'FAILED', 'checkout-bot-2': 'FAILED' }),
  );
  clock.set(NIGHT - 3 * SECOND);
  await world.configure([...projects, 'translation-quality'], { datasets: true });
  await world.fail('search-ranking', 'auth', 378);
  await world.fail('summaries', 'network', 9, {
    message: 'the connection failed: connect ECONNREFUSED 192.0.2.7:443',
    url: 'https://evaluation.example.com/v2/projects/summaries/prompts/',
  });
  for (const project of ['support-triage', 'fraud-review']) {
    await world.see(project, inExperiments(prompts.get(project) ?? {}));
  }
  expectAtNight(world);
  clock.set(NIGHT);
  return world;
}

/** Adds the experiment of each prompt, by the number in its id; some have none. */
function inExperiments(shown: Readonly<Record<string, string>>): Readonly<Record<string, Shown>> {
  const of = (id: string) => {
    const number = Number(id.split('-').at(-1));
    if (number % 8 === 7) return undefined;
    return `nightly-${number < 1000 ? 38 : 39 + Math.floor((number - 1000) / 40)}`;
  };
  return Object.fromEntries(
    Object.entries(shown).map(([id, status]) => {
      const experiment = of(id);
      return [id, { status, ...(experiment !== undefined && { experiment }) }];
    }),
  );
}

/** Sets limits of every source, and teams. */
function expectAtNight(world: PageWorld): void {
  const learned = { source: 'learned' } as const;
  const PENDING = { ...learned, limitMs: HOUR, typicalMs: 12 * MINUTE };
  const RUNNING = { ...learned, limitMs: 9 * HOUR, typicalMs: 80 * MINUTE };
  const expect = { ...BY_DEFAULT.expect, maxFailureRatio: 0.05 };
  world.change('checkout-bot', { team: 'checkout', expect, expectations: { PENDING, RUNNING } });
  const slow = { source: 'configured', limitMs: 12 * HOUR, typicalMs: undefined } as const;
  const off = { source: 'off', limitMs: undefined, typicalMs: 80 * MINUTE } as const;
  world.change('fraud-review', { team: 'risk', expectations: { PENDING: slow, RUNNING: off } });
}

function firstPrompts(project: string): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [
      `${project}-${index}`,
      index % 4 === 0 ? 'RUNNING' : 'COMPLETED',
    ]),
  );
}

function moved(status: string, chance: number): string {
  if (status === 'PENDING') return chance < 0.3 ? 'RUNNING' : status;
  if (status === 'RUNNING') return chance < 0.05 ? 'COMPLETED' : chance < 0.056 ? 'FAILED' : status;
  return chance < 0.004 ? 'PENDING' : status;
}

const ERRORS: readonly Settlement[] = [
  {
    errorInfo: {
      error_id: 'OUTPUT_PARSE_ERROR',
      error_msg: 'Row 17: expected a JSON object, got "Sure! Here is the JSON you asked for:"',
    },
    errorMsgTruncated: false,
  },
  {
    errorInfo: {
      error_id: 'MODEL_TIMEOUT',
      error_msg:
        'The model did not answer within 120 s.\n  at evaluate (worker.py:212)\n  at run_batch (worker.py:88)\nattempt 3 of 3',
    },
    errorMsgTruncated: false,
  },
  { reason: 'not_found' },
  {
    errorInfo: {
      error_id: 'DATASET_ROW_INVALID',
      error_msg: 'Column "expected" is empty in row 4.',
    },
    errorMsgTruncated: false,
  },
];

/** Creates 300 projects with 10 prompts each, of which every hundredth cannot be polled, and `crowd` with 10,000 prompts in as many experiments. */
export async function largeScenario(): Promise<PageWorld> {
  const world = await openPageWorld(NIGHT - HOUR);
  const projects = Array.from({ length: 300 }, (_, index) => `project-${index}`);
  await world.configure(['crowd', ...projects]);
  const statuses = ['COMPLETED', 'RUNNING', 'FAILED', 'PENDING'];
  // Each prompt has an experiment of its own, as no service should do.
  const shown = (index: number, status: string) =>
    ({ status, experiment: `${index} ${'x'.repeat(500)}` }) as const;
  const crowd = (status: string) =>
    Object.fromEntries(
      Array.from({ length: 10_000 }, (_, index) => [`prompt-${index}`, shown(index, status)]),
    );
  await world.see('crowd', crowd('PENDING'));
  for (const [turn, ago] of [HOUR, MINUTE].entries()) {
    world.clock.set(NIGHT - ago);
    for (const [number, project] of projects.entries()) {
      const few = Array.from({ length: 10 }, (_, index) => [
        `${project}-prompt-${index}`,
        statuses[(number + index + turn) % statuses.length] ?? 'PENDING',
      ]);
      await world.see(project, Object.fromEntries(few));
    }
  }
  await world.see('crowd', {
    ...crowd('RUNNING'),
    'prompt-17': shown(17, 'PENDING'),
    'prompt-4711': shown(4711, 'FAILED'),
  });
  for (let number = 0; number < 300; number += 100)
    await world.fail(`project-${number}`, 'timeout');
  world.clock.set(NIGHT);
  return world;
}

const COMBINING = `z${'\u0335\u0321\u0489\u0300'.repeat(100)}algo`;

/** Texts that would break a careless page. */
export const HOSTILE = [
  '<script>globalThis.hacked = 1</script>',
  '"><img src=x onerror="globalThis.hacked = 1">',
  "' onmouseover='globalThis.hacked = 1' x='",
  'javascript:globalThis.hacked=1',
  '</title></main><script>globalThis.hacked = 1</script>',
  '&lt;b&gt;&amp;amp;',
  '{{constructor.constructor("globalThis.hacked = 1")()}}',
  '\u202Etxt.exe\u202C and \u2066isolated',
  '\u0000\u0001\u0007\u001B[31mred',
  'line\nbreak\r\nand\ttab',
  ' leading and trailing ',
  '   ',
  '\u200B\u200B\u200B',
  '\u3164\u115F\u2800',
  'שלום עולם',
  'مرحبا بالعالم',
  '👩‍👩‍👧‍👦🏳️‍🌈👍🏽',
  COMBINING,
  '..%2F..%2Fetc',
  'a/b?c=d#e',
  '__proto__',
  '漢'.repeat(512),
  'W'.repeat(512),
  '\u202E'.repeat(512),
  Array.from({ length: 256 }, () => '\u202E\u0000').join(''),
  '"'.repeat(512),
] as const;

/** Number of {@link HOSTILE} texts of each project; each page shows different ones. */
const HOSTILE_EACH = 4;

/** Creates projects, prompts, names, experiments, raw statuses and errors from {@link HOSTILE} texts, each text in each place. */
export async function hostileScenario(): Promise<PageWorld> {
  const world = await openPageWorld(NIGHT - HOUR);
  await world.configure(HOSTILE);
  const prompts = HOSTILE.map((project, start) => ({
    project,
    texts: [...HOSTILE, ...HOSTILE].slice(start, start + HOSTILE_EACH),
  }));
  for (const { project, texts } of prompts) {
    const running = texts.map((text) => [
      text,
      { status: 'RUNNING', name: text.repeat(2).slice(0, 1024), experiment: cleanUnicode(text) },
    ]);
    await world.see(project, Object.fromEntries(running));
  }
  world.clock.set(NIGHT - MINUTE);
  for (const { project, texts } of prompts) {
    const failed = texts.map((text, index) => [
      text,
      {
        status: index % 2 === 0 ? 'FAILED' : text,
        name: text,
        experiment: cleanUnicode(text),
      },
    ]);
    await world.see(project, Object.fromEntries(failed));
  }
  await world.settle((id) => ({
    errorInfo: { error_id: id, error_msg: id.repeat(Math.ceil(8192 / id.length)).slice(0, 2700) },
    errorMsgTruncated: true,
  }));
  await world.fail(HOSTILE[0], 'network', 3);
  await world.fail(COMBINING, 'auth', 3, { message: COMBINING, detail: COMBINING });
  world.clock.set(NIGHT);
  return world;
}

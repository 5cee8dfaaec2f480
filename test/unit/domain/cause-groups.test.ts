import { expect, it } from 'vitest';
import { Grouping } from '../../../proof/messages-file.ts';
import { randomNumbers } from '../../../proof/random.ts';
import { causeOf } from '../../../src/domain/cause.ts';
import { TEMPLATES } from './cause-templates.ts';

type Random = () => number;

const FIRST = 'alice bob carol dmitri'.split(' ');
const PROJECTS =
  'checkout-bot search-ranker faq-eval nightly_regression support-triage summariser contract-review'.split(
    ' ',
  );
const MODELS =
  'gpt-4o gpt-4o-mini claude-3-5-sonnet-20241022 mistral-large-latest llama-3.1-70b-instruct gemini-1.5-pro command-r-plus o3-mini qwen2.5-72b deepseek-chat'.split(
    ' ',
  );
const HOSTS =
  'api.openai.com api.anthropic.com eval-db.internal llm-gateway.svc.cluster.local judge.example.com 10.4.17.23 proxy.corp.example.net'.split(
    ' ',
  );
const METRICS =
  'faithfulness relevance toxicity answer_similarity tone coherence context_recall'.split(' ');
const CLASSES = 'Answer JudgeVerdict ScoreCard Rubric EvaluationResult'.split(' ');
const FIELDS = 'score reasoning verdict items.0.label confidence metadata.source'.split(' ');
const TEXTS = [
  'The answer is mostly correct but misses the second part of the question',
  'I think this response deserves a 4 because it cites its sources',
  "I'm sorry, but I can't help with grading this conversation",
  'Sure! Here is the evaluation you asked for',
  'Paris is the capital of France and lies on the Seine',
  'As an AI language model I do not have opinions about refunds',
  'Both assistants behave politely, however assistant B hallucinated a phone number',
  'Rating: good. Explanation: concise and helpful',
  'refund my order please it never arrived at my house',
  "It's hard to say whether the user's request was fulfilled",
  'La respuesta es correcta y completa',
  'Die Antwort ist unvollständig, da ein Beleg fehlt',
  'Überraschend gut geschrieben',
  '回答は正確ですが、説明が足りません',
  '这个回答不完整，需要更多细节',
  'Step one look at the order Step two check the refund window',
];
const OBJECTS = [
  '{"score": 4, "reasoning": "The answer covers the policy"}',
  "{'verdict': 'good', 'explanation': 'cites the manual'}",
  '{"label": "A", "notes": ["helpful", "polite customer"]}',
  '{"rating": "excellent", "comment": "I liked the greeting"}',
];
const FUNCTIONS = 'run evaluate _call judge_once parse_score create post request invoke'.split(' ');
const FILES = 'judge client runner parser scoring base api_requestor pipeline'.split(' ');

function pick<Value>(random: Random, values: readonly Value[]): Value {
  const value = values[Math.floor(random() * values.length)];
  if (value === undefined) throw new Error('nothing to pick from');
  return value;
}

function int(random: Random, from: number, to: number): number {
  return from + Math.floor(random() * (to - from + 1));
}

function characters(random: Random, alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join('');
}

const HEX = '0123456789abcdef';
const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const pad = (value: number): string => String(value).padStart(2, '0');

function path(random: Random): string {
  return `/${pick(random, ['app', 'srv/eval', 'usr/lib/python3.11/site-packages/openai', 'home/runner/work'])}/${pick(random, FILES)}.py`;
}

function pythonFrames(random: Random): string {
  const frames = Array.from(
    { length: int(random, 1, 4) },
    () =>
      `  File "${path(random)}", line ${int(random, 3, 900)}, in ${pick(random, FUNCTIONS)}\n    ${pick(random, ['result = await self._call(prompt)', 'raise self._make_status_error(err)', 'return json.loads(text)', 'score = float(match.group(1))'])}`,
  );
  return `Traceback (most recent call last):\n${frames.join('\n')}`;
}

const SLOTS: Readonly<Record<string, (random: Random) => string>> = {
  n: (random) => String(random() < 0.1 ? 1 : int(random, 2, 40_000)),
  few: (random) => String(int(random, 1, 9)),
  f: (random) => (random() * 100).toFixed(int(random, 1, 4)),
  neg: (random) => String(-int(random, 1, 200)),
  dur: (random) => pick(random, ['20s', '6m0s', '1.2s', '450ms', '1h2m', `${int(random, 1, 59)}s`]),
  sec: (random) => String(int(random, 1, 600)),
  size: (random) => `${(random() * 80).toFixed(2)} ${pick(random, ['MiB', 'GiB'])}`,
  req: (random) => `req_${characters(random, ALPHANUMERIC, 24)}`,
  uuid: (random) => [8, 4, 4, 4, 12].map((length) => characters(random, HEX, length)).join('-'),
  hex: (random) => `0x${characters(random, HEX, 12)}`,
  sha: (random) => characters(random, HEX, 40),
  ts: (random) =>
    `2025-${pad(int(random, 1, 12))}-${pad(int(random, 1, 28))}T${pad(int(random, 0, 23))}:${pad(int(random, 0, 59))}:${pad(int(random, 0, 59))}Z`,
  date: (random) =>
    `${pick(random, ['Mon', 'Tue', 'Fri', 'Sun'])}, ${pad(int(random, 1, 28))} ${pick(random, ['Jan', 'May', 'Sep'])} 2025 ${pad(int(random, 0, 23))}:${pad(int(random, 0, 59))}:00 GMT`,
  ip: (random) => Array.from({ length: 4 }, () => int(random, 1, 250)).join('.'),
  host: (random) => pick(random, HOSTS),
  port: (random) => pick(random, ['443', '8000', '5432', '11434']),
  url: (random) =>
    `https://${pick(random, HOSTS)}/v1/${pick(random, ['chat/completions', 'messages', 'embeddings'])}${random() < 0.3 ? `?api-version=2024-0${int(random, 1, 9)}-01` : ''}`,
  path,
  file: (random) =>
    `${pick(random, ['answers', 'rubric', 'golden-set', 'cases'])}.${pick(random, ['jsonl', 'yaml', 'csv'])}`,
  line: (random) => String(int(random, 1, 900)),
  model: (random) => pick(random, MODELS),
  user: (random) => `${pick(random, FIRST)}${pick(random, ['', '.smith', '_k', '42'])}`,
  email: (random) => `${pick(random, FIRST)}@${pick(random, ['example.com', 'corp.example.org'])}`,
  project: (random) => pick(random, PROJECTS),
  metric: (random) => pick(random, METRICS),
  cls: (random) => pick(random, CLASSES),
  field: (random) => pick(random, FIELDS),
  key: (random) =>
    `sk-${characters(random, ALPHANUMERIC, 4)}***${characters(random, ALPHANUMERIC, 4)}`,
  org: (random) => `org-${characters(random, ALPHANUMERIC, 16)}`,
  pod: (random) =>
    `eval-worker-${characters(random, HEX, 9)}-${characters(random, 'bcdfghjklm', 5)}`,
  text: (random) => pick(random, TEXTS),
  texts: (random) => `${pick(random, TEXTS)}\n${pick(random, TEXTS)}\n\n${pick(random, TEXTS)}`,
  json: (random) => pick(random, OBJECTS),
  py: pythonFrames,
  js: (random) =>
    Array.from(
      { length: int(random, 1, 4) },
      () =>
        `    at ${pick(random, ['async Judge.run', 'Object.<anonymous>', 'processTicksAndRejections'])} (/app/dist/${pick(random, FILES)}.js:${int(random, 1, 300)}:${int(random, 1, 60)})`,
    ).join('\n'),
  java: (random) =>
    Array.from(
      { length: int(random, 1, 4) },
      () =>
        `\tat com.example.eval.${pick(random, CLASSES)}.${pick(random, FUNCTIONS)}(${pick(random, CLASSES)}.java:${int(random, 1, 300)})`,
    ).join('\n'),
};
/** Messages of each template. */
const ROUNDS = 10;
/** An address or a key. */
const PRIVATE = /\b\w+@\w+\.\w+|\b\d{1,3}(?:\.\d{1,3}){3}\b|:\/\/\w|sk-\w/;
const USER_SLOTS = new Set(['text', 'texts', 'json', 'user', 'email']);

const SLOT = /\{(\w+|~?[^{}|]+(?:\|[^{}|]+)+)\}/g;

/** Returns a template with every `{slot}` and `{one|of|these}` filled, and the texts in it that a user or a model wrote. */
function fill(template: string, random: Random) {
  const userTexts: string[] = [];
  const message = template.replaceAll(SLOT, (whole, slot: string) => {
    const isUserText = slot.startsWith('~') || USER_SLOTS.has(slot);
    const value = slot.includes('|')
      ? pick(random, slot.replace('~', '').split('|'))
      : (SLOTS[slot]?.(random) ?? whole);
    if (isUserText) userTexts.push(...value.split('\n').filter((line) => line !== ''));
    return value;
  });
  return { message, userTexts };
}

const wordsOf = (text: string) => text.toLowerCase().match(/[\p{L}\p{N}_.@']+/gu) ?? [];
const spaced = (text: string) => ` ${wordsOf(text).join(' ')} `;
/** Number of consecutive words that identify a text. */
const IDENTIFYING_WORDS = 3;

/** Whether a shape has consecutive words of a user text that its template does not have. */
function showsUserText(shape: string, template: string, userTexts: readonly string[]): boolean {
  const shown = spaced(shape);
  const own = spaced(template.replaceAll(SLOT, ' | '));
  return userTexts.some((text) => {
    const words = wordsOf(text);
    const length = Math.min(IDENTIFYING_WORDS, words.length);
    return words.some((_, at) => {
      const part = ` ${words.slice(at, at + length).join(' ')} `;
      return at + length <= words.length && shown.includes(part) && !own.includes(part);
    });
  });
}

it('the causes of messages are their templates, and show nothing private', () => {
  const random = randomNumbers(1);
  const grouping = new Grouping();
  let withUserText = 0;
  const showing: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const template of TEMPLATES) {
      const { message, userTexts } = fill(template, random);
      const { id, shape } = causeOf({ error_id: null, error_msg: message });
      grouping.add(template, id);
      expect(shape).not.toMatch(PRIVATE);
      if (userTexts.length === 0) continue;
      withUserText += 1;
      if (showsUserText(shape, template, userTexts)) showing.push(shape);
    }
  }
  const { accuracy, groups } = grouping.score;
  expect(accuracy).toBeGreaterThanOrEqual(0.93);
  expect(groups).toBeLessThanOrEqual(1.5 * TEMPLATES.length);
  expect(showing.slice(Math.floor(0.05 * withUserText))).toEqual([]);
});

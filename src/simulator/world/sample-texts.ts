import type { ErrorInfo } from './error-info.ts';

/** The default projects of a simulation. */
export const DEFAULT_PROJECTS = ['checkout-bot', 'search-ranking', 'support-triage'] as const;

type Texts = readonly [string, ...string[]];

export const PROMPT_NAMES: Texts = [
  'baseline zero-shot',
  'few-shot with citations',
  'chain of thought, short',
  'strict JSON output',
  'polite refusal',
  'multilingual summary',
  'tool choice v2',
  'self-critique loop',
];

export const TASK_DESCRIPTIONS: Texts = [
  'Answer the question of the customer from the given passages only, and name the passage that the answer comes from.',
  'Classify the message into one of the known intents; when none fits, answer "other" and give a reason in one sentence.',
  'Rewrite the search query so that the right product is among the first three results, without adding a brand name.',
  'Summarise the conversation in at most sixty words for the person who takes it over, keeping every number as it is.',
  'Decide whether the ticket needs a human within the hour. Answer with yes or no first, then with the decisive phrase.',
];

export const METRICS: Texts = ['exact_match', 'rouge_l', 'f1', 'llm_judge', 'json_validity'];
export const MODELS: Texts = ['atlas-large-2', 'atlas-small-2', 'lyra-70b', 'lyra-8b-instruct'];
export const EXPERIMENTS: Texts = ['spring-regression', 'prompt-length', 'temperature-sweep'];
export const DATASET_NAMES: Texts = ['golden answers', 'edge cases', 'live sample', 'adversarial'];

export const ERRORS: readonly [ErrorInfo, ...ErrorInfo[]] = [
  {
    error_id: 'RATE_LIMIT_EXCEEDED',
    error_msg: 'Model provider answered 429: 60 requests per minute used up, retry in 38 s.',
  },
  {
    error_id: 'CONTEXT_LENGTH_EXCEEDED',
    error_msg: 'Row 214 needs 9,731 tokens; the model accepts at most 8,192.',
  },
  {
    error_id: 'MODEL_TIMEOUT',
    error_msg:
      'No completion within 120 s for 7 of 250 rows; the run was given up after 3 attempts.',
  },
  {
    error_id: 'OUTPUT_PARSE_ERROR',
    error_msg: 'Row 17: expected a JSON object, got "Sure! Here is the JSON you asked for:…"',
  },
  {
    error_id: 'DATASET_ROW_INVALID',
    error_msg: 'Column "expected" is empty in rows 3, 58 and 59.',
  },
  {
    error_id: 'METRIC_EVALUATION_FAILED',
    error_msg:
      'Traceback (most recent call last):\n  File "metrics/rouge.py", line 88, in score\n    return hits / total\nZeroDivisionError: division by zero',
  },
  {
    error_id: 'CONTENT_FILTERED',
    error_msg: 'The provider refused 12 of 250 completions (category: self-harm).',
  },
  {
    error_id: 'BUDGET_EXCEEDED',
    error_msg: 'The project spent 50.02 € of 50.00 € this month; the run was stopped at row 131.',
  },
];

/** Valid ids that careless clients handle wrongly. */
export const ODD_IDS: readonly string[] = [
  'prompt with spaces',
  'nested/prompt/1',
  '100%',
  '%2F',
  'ünïcode-提示-🚀',
  `"quoted" 'twice'`,
  'back\\slash',
  'query?x=1#fragment',
  'a+b&c=d;e',
  '<script>alert(1)</script>',
  '__proto__',
  'constructor',
  ' leading and trailing ',
  '..',
  'x'.repeat(512),
];

/** Returns the n-th text; after the last one, continues with the first. */
export function nth<T>(list: readonly [T, ...T[]], n: number): T {
  return list[n % list.length] ?? list[0];
}

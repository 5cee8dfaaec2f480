import type { ErrorInfo } from './world.ts';

// What prompts of the simulated service are called, and why they fail.

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
export const METRICS: Texts = ['exact_match', 'rouge_l', 'f1', 'llm_judge', 'json_validity'];
export const EXPERIMENTS: Texts = ['spring-regression', 'prompt-length', 'temperature-sweep'];
export const DATASET_NAMES: Texts = ['golden answers', 'edge cases', 'live sample', 'adversarial'];

/** Returns a whole number between both, which are included. */
export type Between = (from: number, to: number) => number;

type Cause = (between: Between) => ErrorInfo;

/** What is wrong with all prompts that arrive together. They fail soon. */
export const SHARED_CAUSES: readonly [Cause, ...Cause[]] = [
  (between) => ({
    error_id: 'RATE_LIMIT_EXCEEDED',
    error_msg: `Model provider answered 429: 60 requests per minute used up, retry in ${between(5, 59)} s.`,
  }),
  (between) => ({
    error_id: 'DATASET_ROW_INVALID',
    error_msg: `Column "expected" is empty in row ${between(2, 240)}.`,
  }),
];

/** What happens to a single prompt. */
export const CAUSES: readonly [Cause, ...Cause[]] = [
  (between) => ({
    error_id: 'CONTEXT_LENGTH_EXCEEDED',
    error_msg: `Row ${between(2, 240)} needs ${between(8193, 9999).toLocaleString('en')} tokens; the model accepts at most 8,192.`,
  }),
  (between) => ({
    error_id: 'MODEL_TIMEOUT',
    error_msg: `No completion within 120 s for ${between(2, 30)} of 250 rows; the run was given up after 3 attempts.`,
  }),
  (between) => ({
    error_id: 'OUTPUT_PARSE_ERROR',
    error_msg: `Row ${between(2, 240)}: expected a JSON object, got "Sure! Here is the JSON you asked for:…"`,
  }),
  (between) => ({
    error_id: 'METRIC_EVALUATION_FAILED',
    error_msg: `Traceback (most recent call last):\n  File "metrics/rouge.py", line ${between(80, 95)}, in score\n    return hits / total\nZeroDivisionError: division by zero`,
  }),
  (between) => ({
    error_id: 'CONTENT_FILTERED',
    error_msg: `The provider refused ${between(2, 30)} of 250 completions (category: self-harm).`,
  }),
  (between) => ({
    error_id: 'BUDGET_EXCEEDED',
    error_msg: `The project spent 50.02 € of 50.00 € this month; the run was stopped at row ${between(2, 240)}.`,
  }),
];

/** Returns the n-th text; after the last one, continues with the first. */
export function nth<T>(list: readonly [T, ...T[]], n: number): T {
  return list[n % list.length] ?? list[0];
}

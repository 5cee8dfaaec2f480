import type { ErrorInfo } from './error-info.ts';
import {
  DATASET_NAMES,
  EXPERIMENTS,
  METRICS,
  MODELS,
  nth,
  PROMPT_NAMES,
  TASK_DESCRIPTIONS,
} from './sample-texts.ts';

export type Kind = 'prompt' | 'dataset';

/** A prompt with the fields of both its representations: the item of a listing and the single prompt. */
export interface Prompt {
  readonly id: string;
  readonly name: string;
  readonly timestamp: string;
  readonly llm: string;
  readonly dataset: string;
  /** Optional fields are sometimes absent and sometimes null, because the service documents neither. */
  readonly experiment: string | null | undefined;
  readonly task_description: string;
  readonly metric: string;
  readonly history: readonly { readonly status: string; readonly timestamp: string }[];
  /** One of the four statuses, unless a test sets another text. */
  readonly status: string;
  readonly error_info: ErrorInfo | null | undefined;
}

export interface Dataset {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  readonly manifest: object;
  readonly status: string | undefined;
}

const HISTORY_LENGTH = 20;

/** Creates the n-th prompt. */
export function makePrompt(made: {
  readonly n: number;
  readonly id: string;
  readonly dataset: string;
  readonly status: string;
  /** ISO 8601. */
  readonly timestamp: string;
}): Prompt {
  const { n, id, dataset, status, timestamp } = made;
  return {
    id,
    name: `${nth(PROMPT_NAMES, n)} #${n}`,
    timestamp,
    llm: nth(MODELS, n),
    dataset,
    experiment: [nth(EXPERIMENTS, n), null, undefined][n % 3],
    task_description: nth(TASK_DESCRIPTIONS, n),
    metric: nth(METRICS, n),
    history: [{ status, timestamp }],
    status,
    error_info: noErrorInfo(n),
  };
}

/** Returns the prompt with another status. */
export function movePrompt(
  prompt: Prompt,
  status: string,
  timestamp: string,
  errorInfo: ErrorInfo | null | undefined,
): Prompt {
  const history = [...prompt.history, { status, timestamp }].slice(-HISTORY_LENGTH);
  return { ...prompt, status, timestamp, history, error_info: errorInfo };
}

/** Creates the n-th dataset. */
export function makeDataset(n: number, id: string, status: string | undefined): Dataset {
  return {
    id,
    name: `${nth(DATASET_NAMES, n)} ${n}`,
    size: 250 + n * 17,
    manifest: { format: 'jsonl', columns: ['input', 'expected'], version: n },
    status,
  };
}

/** Returns a prompt as an item of a listing: without llm, history and error_info. */
export function promptListItem(prompt: Prompt): object {
  const { id, name, timestamp, dataset, experiment, task_description, metric, status } = prompt;
  return { id, name, timestamp, dataset, experiment, task_description, metric, status };
}

/** Returns a prompt as a single prompt: without its id. */
export function promptDetail(prompt: Prompt): object {
  const { id: _, ...detail } = prompt;
  return detail;
}

/** Returns the error_info of a prompt that has not failed: null or absent, alternately. */
export function noErrorInfo(n: number): null | undefined {
  return n % 2 === 0 ? null : undefined;
}

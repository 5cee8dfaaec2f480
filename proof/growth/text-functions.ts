import { config } from './config.ts';
import { evaluationApi } from './evaluation-api.ts';
import { output } from './output.ts';
import type { TextFunction } from './text-function.ts';

/** Every function that is given text of others; `directory` is where those that read files find them. */
export function textFunctions(directory: string): readonly TextFunction[] {
  return [...evaluationApi, ...config(directory), ...output];
}

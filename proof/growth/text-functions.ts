import { config } from './config.ts';
import { evaluationApi } from './evaluation-api.ts';
import { output } from './output.ts';
import type { TextFunction } from './text-function.ts';

/** Returns every function that reads untrusted text; those that read files find them in `directory`. */
export function textFunctions(directory: string): readonly TextFunction[] {
  return [...evaluationApi, ...config(directory), ...output];
}

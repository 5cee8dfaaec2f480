import { z } from 'zod';
import { after, cause, cursor, limit, project, since, status, type } from './parameters.ts';
import {
  causeSchema,
  errorSchema,
  failureSchema,
  pollSchema,
  projectSchema,
  promptSchema,
  resetSchema,
  transitionSchema,
} from '../../rows/schema.ts';

/** Schemas that the OpenAPI document names. */
export const schemas = {
  Project: projectSchema,
  Prompt: promptSchema,
  Transition: transitionSchema,
  Failure: failureSchema,
  Cause: causeSchema,
  Poll: pollSchema,
  Reset: resetSchema,
  Error: errorSchema,
} as const;

/** Parameters and rows of each path under `/api/v1`: the API parses its parameters by this table (docs/api.md). */
export const operations = {
  '/projects': {
    summary:
      'Configured projects, with the health of their polls, their prompts by status and what is expected of them',
    parameters: z.object({}),
    gives: 'Project',
  },
  '/prompts': {
    summary: 'Prompts that are not gone, newest change first',
    parameters: z.object({ project, status, limit, cursor }),
    gives: 'Prompt',
  },
  '/transitions': {
    summary: 'Transitions of prompts and datasets, newest first',
    parameters: z.object({ project, limit, cursor }),
    gives: 'Transition',
  },
  '/failures': {
    summary: 'Failures with their error_info, newest first',
    parameters: z.object({ project, cause, limit, cursor }),
    gives: 'Failure',
  },
  '/causes': {
    summary: 'Causes of failures, most frequent first; all that are left out are one last row',
    parameters: z.object({
      project,
      since,
      limit: limit.describe('Maximum number of causes; a last row `other` may follow them.'),
    }),
    gives: 'Cause',
  },
  '/openapi.json': {
    summary: 'This document',
    parameters: z.object({}),
    gives: 'document',
  },
  '/events': {
    summary: 'Transitions, failures and polls as they happen',
    parameters: z.object({ project, type, after }),
    gives: 'stream',
  },
} as const satisfies Record<
  string,
  { summary: string; parameters: z.ZodObject; gives: keyof typeof schemas | 'document' | 'stream' }
>;

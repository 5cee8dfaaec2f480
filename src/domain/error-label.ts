import type { ErrorInfo } from './failure.ts';
import { visible } from './visible.ts';

/** Maximum number of error_ids of a project that are counted by themselves: the first ones seen. */
export const MAX_ERROR_LABELS = 20;
const MAX_LENGTH = 128;

/** Labels that are no error_id of the service: failures without one, and those of further error_ids. */
export const SPECIAL_ERROR_LABELS = ['none', 'other'] as const;

/** Failures of a project that have been reported with one error_id. */
export interface ErrorTotal {
  /** The error_id as a label, or one of {@link SPECIAL_ERROR_LABELS}. */
  readonly label: string;
  readonly count: number;
  /** When the first of them was settled, epoch ms. */
  readonly firstSeenAt: number;
}

/**
 * Returns the label under which a failure is counted: its error_id on one line, without characters that a terminal or a page
 * could act on, cut to 128 characters (docs/specification.md#error-ids).
 */
export function errorLabel(errorInfo: ErrorInfo | undefined): string {
  const text = visible(errorInfo?.error_id ?? '');
  return text === '' ? 'none' : Array.from(text).slice(0, MAX_LENGTH).join('');
}

/** Whether an error label stands for an error_id of the service. */
export function isErrorId(label: string): boolean {
  return SPECIAL_ERROR_LABELS.every((special) => special !== label);
}

import { hash } from 'node:crypto';
import { shapeOf } from './causes/shape.ts';
import type { ErrorInfo } from './failure.ts';

/** Version of the grouping, part of every cause id (docs/specification.md#causes). */
const CAUSE_VERSION = 1;
const ID_LENGTH = 16;
const NO_ERROR_INFO: ErrorInfo = { error_id: null, error_msg: null };

/** What failures with the same explanation have in common. */
export interface Cause {
  /** 16 hexadecimal digits, the same for the same error_id and shape wherever and whenever it is computed. */
  readonly id: string;
  /** The author's words of the error_msg, with `<*>` for what varies: one line of at most 200 characters. */
  readonly shape: string;
}

/**
 * Returns the cause of a failure (docs/specification.md#causes), the same for all failures without an error_info. Takes linear
 * time.
 */
export function causeOf(errorInfo: ErrorInfo | undefined): Cause {
  const { error_id, error_msg } = errorInfo ?? NO_ERROR_INFO;
  const shape = error_msg === null ? '' : shapeOf(error_msg);
  const key = JSON.stringify([CAUSE_VERSION, error_id, shape]);
  return { id: hash('sha256', key, 'hex').slice(0, ID_LENGTH), shape };
}

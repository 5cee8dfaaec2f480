import type { AnomalySummary } from '../domain/record.ts';

/** Why the Evaluation Service gave no usable answer (docs/specification.md#fetching): a label of metrics. */
export const API_FAILURE_REASONS = [
  'auth',
  'not_found',
  'validation',
  'rate_limited',
  'client_error',
  'server_error',
  'timeout',
  'network',
  'tls',
  'redirect',
  'invalid_response',
  'too_large',
] as const;
export type ApiFailureReason = (typeof API_FAILURE_REASONS)[number];

export const POLL_FAILURE_REASONS = [...API_FAILURE_REASONS, 'store'] as const;
export type PollFailureReason = (typeof POLL_FAILURE_REASONS)[number];

export const STORE_FAILURE_REASONS = [
  'full',
  'io',
  'busy',
  'corrupt',
  'replaced',
  'other',
] as const;
export type StoreFailureReason = (typeof STORE_FAILURE_REASONS)[number];

/** What an `ApiError` may tell besides its reason. Every text is scrubbed of keys and cut. */
export interface ApiErrorDetails {
  /** Of the answer, where there was one. */
  readonly statusCode?: number | undefined;
  /** Where a redirect pointed. */
  readonly location?: string | undefined;
  /** The `detail` of a 422, as JSON text. */
  readonly detail?: string | undefined;
  /** How long the service asked to wait, ms, at most 5 minutes. */
  readonly retryAfterMs?: number | undefined;
  /** Of a listing without a single usable item. */
  readonly anomalies?: readonly AnomalySummary[] | undefined;
  readonly cause?: unknown;
}

/** A request to the Evaluation Service that brought nothing usable. Its message holds no key. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly reason: ApiFailureReason;
  readonly details: ApiErrorDetails;

  constructor(reason: ApiFailureReason, message: string, details: ApiErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.reason = reason;
    this.details = details;
  }
}

/** The store could not do what it was asked; nothing of it was done. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly reason: StoreFailureReason;

  constructor(reason: StoreFailureReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
  }
}

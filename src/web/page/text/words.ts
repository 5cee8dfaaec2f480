import type { NoErrorInfoReason } from '../../../domain/failure.ts';
import type { Origin } from '../../../domain/status.ts';
import type { PollFailureReason, StoreFailureReason } from '../../../monitor/errors.ts';

/** Reasons of failed polls, worded to follow "because". */
export const POLL_FAILURE_WORDS: Readonly<Record<PollFailureReason, string>> = {
  auth: 'the service refuses the API key, or the key cannot be read',
  not_found: 'the service has no such project (404)',
  validation: 'the service rejects the request as invalid (422)',
  rate_limited: 'the service asks for fewer requests (429)',
  client_error: 'the service refuses the request (4xx)',
  server_error: 'the service reports an internal error (5xx)',
  timeout: 'the service does not answer in time',
  network: 'the service cannot be reached',
  tls: 'no trusted TLS connection to the service is possible',
  redirect: 'the service redirects to another address, and evalwatch does not send the key there',
  invalid_response: 'the service sent an invalid answer',
  too_large: 'the answer of the service exceeds max_response_size or max_items',
  store: 'the poll could not be stored',
};

/** Replace the words for `auth` if the cause is known. */
export const REFUSED_KEY_WORDS = 'the service refuses the API key (401 or 403)';
export const NO_KEY_WORDS =
  'there is no API key to send: its file or variable cannot be read, is empty or does not hold a key';

/** Reasons of failures without error_info, worded to follow "because". */
export const NO_ERROR_INFO_WORDS: Readonly<Record<NoErrorInfoReason, string>> = {
  invalid_id: 'the id of the prompt cannot be used in a request',
  not_found: 'the service no longer has the prompt (404)',
  validation: 'the service rejects the request as invalid (422)',
  client_error: 'the service refuses the request (4xx)',
  redirect: 'the service redirects to another address',
  too_large: 'the answer of the service is too large',
  invalid_response: 'the service sent an invalid answer',
  no_error_info: 'the service has none',
  project_removed: 'the project was removed from the configuration',
  unavailable: 'the service was unavailable for a day',
};

export const STORE_FAILURE_WORDS: Readonly<Record<StoreFailureReason, string>> = {
  full: 'the disk is full',
  io: 'the disk reports errors, the file cannot be opened, or the database cannot be reached',
  busy: 'another process uses it, or the database is overloaded',
  corrupt: 'it is damaged',
  replaced: 'its file was deleted, moved or replaced',
  other: 'see the log, event store.commit_failed',
};

/** Sign of each status, for readers who cannot distinguish the colours. */
export const SIGNS: Readonly<Record<Origin, string>> = {
  NEW: '+',
  PENDING: '○',
  RUNNING: '▶',
  COMPLETED: '✓',
  FAILED: '✗',
  UNKNOWN: '?',
  NONE: '–',
};

/** `1 prompt`, `12,345 prompts`. */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;
}

export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

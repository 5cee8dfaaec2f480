import type { NoErrorInfoReason } from '../../../domain/failure.ts';
import type { Origin } from '../../../domain/status.ts';
import type { PollFailureReason, StoreFailureReason } from '../../../monitor/errors.ts';

/** Why a project cannot be polled, after "because". */
export const POLL_FAILURE_WORDS: Readonly<Record<PollFailureReason, string>> = {
  auth: 'the service refuses the API key, or the key cannot be read',
  not_found: 'the service does not know this project (404)',
  validation: 'the service finds the request invalid (422)',
  rate_limited: 'the service asks for fewer requests (429)',
  client_error: 'the service refuses the request (4xx)',
  server_error: 'the service has an error of its own (5xx)',
  timeout: 'the service does not answer in time',
  network: 'the service cannot be reached',
  tls: 'no trusted TLS connection to the service comes about',
  redirect: 'the service redirects elsewhere, and the key does not go there',
  invalid_response: 'the answer of the service makes no sense',
  too_large: 'the answer of the service is larger than max_response_size or max_items allow',
  store: 'the poll could not be stored',
};

/** Where it is known, in the place of those for `auth`. */
export const REFUSED_KEY_WORDS = 'the service refuses the API key (401 or 403)';
export const NO_KEY_WORDS =
  'there is no API key to send: its file or variable cannot be read, is empty or is no key';

/** Why a failure has no error_info, after "because". */
export const NO_ERROR_INFO_WORDS: Readonly<Record<NoErrorInfoReason, string>> = {
  invalid_id: 'a prompt of this id cannot be asked for',
  not_found: 'the service does not know the prompt any more (404)',
  validation: 'the service finds the request invalid (422)',
  client_error: 'the service refuses the request (4xx)',
  redirect: 'the service redirects elsewhere',
  too_large: 'the answer of the service is too large',
  invalid_response: 'the answer of the service makes no sense',
  no_error_info: 'the service gives none',
  project_removed: 'the project left the configuration',
  unavailable: 'the service could not be asked for a day',
};

export const STORE_FAILURE_WORDS: Readonly<Record<StoreFailureReason, string>> = {
  full: 'the disk is full',
  io: 'the disk reports errors',
  busy: 'somebody else holds the file',
  corrupt: 'the file is damaged',
  replaced: 'the file was deleted, moved or replaced',
  other: 'see the log, event store.commit_failed',
};

/** A sign beside each status, for who cannot tell the colours. */
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

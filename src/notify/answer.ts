import { TIMEOUT_MS } from '../client/request-once.ts';
import type { ApiError } from '../monitor/errors.ts';

/** How an attempt ended. Its texts are on one line, and have no part of an address or of a secret. */
export type Delivery =
  | {
      readonly ok: true;
      /** The status code of an answer by HTTP. */
      readonly statusCode?: number | undefined;
      /** What seems wrong although the message was taken. */
      readonly doubt?: string | undefined;
    }
  | {
      readonly ok: false;
      /** Such as `403 invalid_token`. */
      readonly reason: string;
      /** What to do. */
      readonly advice?: string | undefined;
      readonly statusCode?: number | undefined;
      /** How long the receiver asks to wait, at most an hour. */
      readonly retryAfterMs?: number | undefined;
    };

/** Why no answer came, and what to do. */
export function explainNoAnswer({ reason, details: { code = reason } }: ApiError): {
  readonly reason: string;
  readonly advice: string;
} {
  if (reason === 'timeout') {
    return {
      reason: `no answer within ${TIMEOUT_MS / 1000} s`,
      advice: 'Check the address, and whether a firewall is between here and the receiver',
    };
  }
  if (/^(ENOTFOUND|EAI_|EDNS$)/.test(code)) {
    return {
      reason: `unknown host (${code})`,
      advice: 'DNS does not know the host of the address: check it',
    };
  }
  if (code === 'ECONNREFUSED') {
    return {
      reason: `connection refused (${code})`,
      advice: 'Nothing listens at the port of the address: check it',
    };
  }
  if (reason === 'tls') {
    return {
      reason: `no trusted TLS connection (${code})`,
      advice:
        'Check the scheme, the host and the port of the address; if its certificate is from a private authority, set service.ca_file to the certificate of that authority',
    };
  }
  return {
    reason: `the connection failed (${code})`,
    advice: 'Check the address and the network',
  };
}

/** What to do about an answer of HTTP that is not 2xx. */
export function adviceFor(statusCode: number): string {
  if (statusCode >= 300 && statusCode < 400) {
    return 'Redirects are not followed: set the address to which it redirects';
  }
  switch (statusCode) {
    case 401:
    case 403:
      return 'The receiver refuses the address or the signature: compare them, or create a new address';
    case 404:
    case 410:
      return 'The receiver does not know the address: it is mistyped, or was deleted: create a new one';
    case 429:
      return 'The receiver takes no more messages for now: the daemon waits as long as it asks';
  }
  return statusCode >= 500
    ? 'The receiver has a failure of its own: the daemon tries again for 24 hours'
    : 'The receiver does not take such a message: check that the address belongs to the type';
}

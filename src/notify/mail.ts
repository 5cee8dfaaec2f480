import { getCACertificates } from 'node:tls';
import { createTransport } from 'nodemailer';
import { connectionError } from '../client/errors.ts';
import { TIMEOUT_MS } from '../client/request-once.ts';
import type { SmtpAddress } from '../config/addresses.ts';
import type { EmailReceiver } from '../domain/receiver.ts';
import { ApiError, isMistake } from '../monitor/errors.ts';
import type { Delivery } from './answer.ts';
import { mailOf } from './format/email.ts';
import type { Message } from './message.ts';
import type { SendOptions } from './send.ts';

/**
 * Sends a mail once, on a connection of its own, which no proxy is used for. Nothing but the greeting goes unencrypted, unless the
 * address says `tls=off`. Rejects with the signal's reason when it aborts.
 * @throws {ApiError} without an answer, or if the connection is not safe
 */
export async function sendMail(
  { from, to }: EmailReceiver,
  { host, port, tls, login }: SmtpAddress,
  message: Message,
  { network: { authorities }, clock, signal }: SendOptions,
): Promise<Delivery> {
  const deadline = new AbortController();
  const timer = clock.timeout(TIMEOUT_MS, () => deadline.abort());
  const transport = createTransport({
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'off',
    ...(login !== undefined && { auth: login }),
    tls: {
      // Otherwise NODE_TLS_REJECT_UNAUTHORIZED=0 would have the password sent to anybody.
      rejectUnauthorized: true,
      ...(authorities !== undefined && {
        ca: [...getCACertificates(), authorities],
        allowPartialTrustChain: true,
      }),
    },
    socketCloseTimeout: 0,
  });
  try {
    const { rejected, rejectedErrors } = await transport.sendMail({
      ...mailOf(message, from, to),
      signal: AbortSignal.any([signal, deadline.signal]),
    });
    if (rejected.length === 0) return { ok: true };
    // The others have the mail, and would get it again and again.
    const reply = replyOf(rejectedErrors?.[0]);
    return { ok: true, doubt: `recipients refused: ${rejected.length} of ${to.length}${reply}` };
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.signal.aborted) throw new ApiError('timeout', 'no answer: timeout');
    if (!(error instanceof Error) || isMistake(error)) throw error;
    return refusal(error);
  } finally {
    timer.cancel();
  }
}

/** What nodemailer adds to an error. Texts of the server name people and hosts, so only its codes are used. */
interface SmtpError extends Error {
  readonly code?: string;
  /** Code of the system or of TLS that was replaced by `code`. */
  readonly originalCode?: string;
  readonly response?: string;
  readonly responseCode?: number;
  /** What the server refused. */
  readonly command?: string;
}

/** ` (550 5.1.1)`, or nothing without a reply. */
function replyOf(error: SmtpError | undefined): string {
  const reply = /^\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3}\b)?/.exec(error?.response ?? '')?.[0];
  return reply === undefined ? '' : ` (${reply.replace('-', ' ')})`;
}

/** By the code of the error, that of the reply, or the command that was refused. */
const REFUSALS: Readonly<Record<string, readonly [what: string, advice: string]>> = {
  EAUTH: [
    'the login is refused',
    'Check user and password in the address, percent-encoded; some providers want a password for apps instead of that of the account',
  ],
  '530': [
    'the server wants a login or TLS',
    'Put user and password into the address, without ?tls=off',
  ],
  'MAIL FROM': [
    'the sender is refused',
    'Check `from`: the server may take only the address of its login',
  ],
  'RCPT TO': [
    'the recipient is refused',
    'Check `to`, and whether the server delivers elsewhere only after a login',
  ],
  DATA: ['the message is refused', 'The server may take it for spam: ask who runs it'],
  STARTTLS: [
    'there is no STARTTLS',
    'Use smtps:// if the port has TLS from the start, or end the address in ?tls=off for a server of your own network without TLS',
  ],
};
const REFUSAL = ['the server refuses', 'Ask who runs the mail server'] as const;

/** @throws {ApiError} if the server refused nothing: there was no answer, or no safe connection */
function refusal(error: SmtpError): Delivery {
  const { code = error.name, originalCode = code, responseCode, command = '' } = error;
  if (responseCode === undefined && code !== 'EAUTH') {
    // Its message names hosts and addresses.
    const details = { code: originalCode };
    const { reason } = connectionError(Object.assign(new Error(), details), () => '');
    throw new ApiError(code === 'ETLS' ? 'tls' : reason, `no answer: ${originalCode}`, details);
  }
  const [what, advice] =
    REFUSALS[code] ?? REFUSALS[String(responseCode)] ?? REFUSALS[command] ?? REFUSAL;
  const isTemporary = responseCode !== undefined && responseCode < 500;
  return {
    ok: false,
    reason: `${what}${isTemporary ? ' for now' : ''}${replyOf(error)}`,
    advice: isTemporary ? 'The server asks to try again later, and the daemon does so' : advice,
  };
}

import { STATUS_CODES } from 'node:http';
import { unescape } from 'node:querystring';
import { type OnceAnswer, requestOnce } from '../client/request-once.ts';
import { parseRetryAfter } from '../client/retry.ts';
import { ConfigError } from '../config/config.ts';
import { readReceiverUrl, readSigningKey, readSmtpUrl } from '../config/secrets.ts';
import type { HttpReceiver, Receiver } from '../domain/receiver.ts';
import { onOneLine } from '../domain/visible.ts';
import { ApiError } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ServiceSettings } from '../monitor/ports/service.ts';
import { slackBody } from './format/slack.ts';
import { teamsBody } from './format/teams.ts';
import { webhookBody, webhookHeaders } from './format/webhook.ts';
import type { Message } from './message.ts';
import { adviceFor, type Delivery, explainNoAnswer } from './answer.ts';
import { cutTo } from './wording.ts';

/** Longest text of the receiver in a reason. */
const MAX_DETAIL = 100;
/** Shorter parts of an address are no secret. */
const MIN_SECRET = 8;
/** Longest wait that a receiver can ask for. */
const MAX_RETRY_AFTER_MS = 60 * 60_000;

const PROXY_HINT = '. The request goes by service.proxy_url: check that, too';
/** At a port with TLS from the start, `smtp://` waits for a greeting that never comes. */
const SMTPS_HINT = '. A port with TLS from the start, such as 465, needs smtps://';

export interface SendOptions {
  /** CA certificates to trust beside the default ones, and the proxy, which mail does not use. */
  readonly network: Pick<ServiceSettings, 'authorities' | 'proxyUrl'>;
  /** The version of evalwatch. */
  readonly version: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'timeout'>;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
}

/** Sends a message once, with the address and the secret as they are now. Rejects only because of a bug. */
export async function send(
  receiver: Receiver,
  message: Message,
  options: SendOptions,
): Promise<Delivery> {
  try {
    if (receiver.type !== 'email') return await post(receiver, message, options);
    const address = readSmtpUrl(receiver);
    // A process without receivers of mail never loads this code.
    const { sendMail } = await import('./mail.ts');
    return await sendMail(receiver, address, message, options);
  } catch (error) {
    if (options.signal.aborted) return { ok: false, reason: 'evalwatch is stopping' };
    if (error instanceof ConfigError) return { ok: false, reason: error.message };
    if (!(error instanceof ApiError)) throw error;
    const { reason, advice } = explainNoAnswer(error);
    const isSlowMail = receiver.type === 'email' && error.reason === 'timeout';
    const hasProxy = receiver.type !== 'email' && options.network.proxyUrl !== undefined;
    const hint = (isSlowMail && SMTPS_HINT) || (hasProxy && PROXY_HINT) || '';
    return { ok: false, reason, advice: advice + hint };
  }
}

async function post(
  receiver: HttpReceiver,
  message: Message,
  { network, version, clock, signal }: SendOptions,
): Promise<Delivery> {
  const url = readReceiverUrl(receiver);
  const bodies = { slack: slackBody, teams: teamsBody, webhook: webhookBody };
  const content = bodies[receiver.type](message);
  const signed =
    receiver.type === 'webhook'
      ? webhookHeaders(message, content, clock.now(), readSigningKey(receiver))
      : {};
  const answer = await requestOnce(url, {
    headers: {
      'content-type': 'application/json',
      'user-agent': `evalwatch/${version}`,
      ...signed,
    },
    content,
    network,
    clock,
    signal,
  });
  return judge(receiver.type, answer, url, clock.now());
}

/** @param now epoch ms */
function judge(
  type: HttpReceiver['type'],
  { statusCode, headers, body }: OnceAnswer,
  url: string,
  now: number,
): Delivery {
  const text = body?.toString().trim() ?? '';
  if (statusCode >= 200 && statusCode < 300) {
    if (!/^<(?:!doctype\b|html\b|!--)/i.test(text)) return { ok: true, statusCode };
    const reason = `${statusCode} with a page of HTML`;
    const advice = 'This is a page for people, such as one to log in: check the address';
    if (type === 'webhook') return { ok: true, statusCode, doubt: `${reason}. ${advice}` };
    return { ok: false, statusCode, reason, advice };
  }
  const said = wordsOf(text, url) ?? STATUS_CODES[statusCode] ?? '';
  return {
    ok: false,
    statusCode,
    reason: `${statusCode} ${said}`.trim(),
    advice: adviceFor(statusCode),
    retryAfterMs: parseRetryAfter(headers['retry-after'], now, MAX_RETRY_AFTER_MS),
  };
}

/** Returns what the body of an error says in words; undefined if it says none, or repeats a part of the address. */
function wordsOf(text: string, url: string): string | undefined {
  const words = messageOf(text) ?? text;
  if (words === '' || /^[<{[]/.test(words)) return undefined;
  const shown = cutTo(onOneLine(words.replaceAll(/\s+/g, ' ')), MAX_DETAIL);
  const { host, pathname, search } = new URL(url);
  const address = `${host}${pathname}${search}`;
  const secrets = `${address}\n${unescape(address)}`.toLowerCase();
  for (let at = 0; at <= shown.length - MIN_SECRET; at++) {
    if (secrets.includes(shown.slice(at, at + MIN_SECRET).toLowerCase())) return undefined;
  }
  return shown;
}

/** Returns the message of an error in JSON, as Discord, Mattermost, Rocket.Chat, Teams and the common libraries write it. */
function messageOf(text: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  for (const key of ['error', 'message', 'detail'])
    if (typeof value === 'object' && value !== null && key in value)
      value = Reflect.get(value, key);
  return typeof value === 'string' ? value : undefined;
}

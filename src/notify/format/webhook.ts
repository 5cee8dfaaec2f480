import { createHmac } from 'node:crypto';
import { visibleJson } from '../../domain/visible.ts';
import type { Message } from '../message.ts';

/** Returns the body for a webhook: the message as JSON without hidden characters. */
export function webhookBody(message: Message): string {
  return visibleJson(JSON.stringify(message));
}

/**
 * Returns the headers of one attempt to send a body, as Standard Webhooks has them.
 * @param at time of the attempt, epoch ms: receivers refuse old ones
 * @param key undefined to send no signature
 */
export function webhookHeaders(
  { id }: Message,
  body: string,
  at: number,
  key: Buffer | undefined,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(at / 1000));
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp };
  if (key === undefined) return headers;
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { ...headers, 'webhook-signature': `v1,${signature}` };
}

import {
  type Answer,
  bodyAnswer,
  compressed,
  type Delivery,
  emptyAnswer,
  errorAnswer,
  jsonAnswer,
  validationAnswer,
} from '../answer.ts';
import { gzip, gzipBomb } from '../encoding.ts';
import { garbage, type Garbage } from './garbage.ts';
import { damageItems, type ItemDamage, statusesOf } from './item-damage.ts';

export const ECHO_PLACES = ['header', 'error', 'validation', 'redirect', 'item'] as const;
type EchoPlace = (typeof ECHO_PLACES)[number];

/** A way in which a service can fail. */
export type Fault =
  /**
   * A status code from 200 to 599. 2xx codes except 204 keep the body unless `body` replaces it, so 200 alone changes nothing.
   * `retryAfter` is the text of the header; without `body`, 304, 422 and 2xx except 204 omit it.
   */
  | {
      readonly kind: 'status';
      readonly code: number;
      readonly retryAfter?: string | undefined;
      readonly body?: string | undefined;
    }
  | { readonly kind: 'redirect'; readonly to: string }
  | { readonly kind: 'garbage'; readonly variant: Garbage }
  | { readonly kind: 'items'; readonly variant: ItemDamage }
  /** The answer contains the API key of the request. */
  | { readonly kind: 'echo'; readonly where: EchoPlace }
  | { readonly kind: 'content-type'; readonly value: string }
  /** A body of `bytes` spaces. */
  | { readonly kind: 'oversize'; readonly bytes: number; readonly chunked: boolean }
  /** A small gzip body that decompresses to `bytes` spaces. */
  | { readonly kind: 'bomb'; readonly bytes: number }
  /** Compressed with gzip even if the client does not accept it; `broken` truncates the compressed bytes. */
  | { readonly kind: 'compression'; readonly broken: boolean }
  /** The answer is sent later, with its content from the time of the request. */
  | { readonly kind: 'delay'; readonly ms: number }
  | Exclude<Delivery, { readonly kind: 'whole' }>;

/** Stages of faults, in the order in which they apply. One answer can have one fault of each stage. */
export const STAGES = ['content', 'encoding', 'delay', 'delivery'] as const;
export type Stage = (typeof STAGES)[number];

const stages: Readonly<Record<Fault['kind'], Stage>> = {
  status: 'content',
  redirect: 'content',
  garbage: 'content',
  items: 'content',
  echo: 'content',
  'content-type': 'content',
  oversize: 'content',
  bomb: 'content',
  compression: 'encoding',
  delay: 'delay',
  hang: 'delivery',
  reset: 'delivery',
  truncate: 'delivery',
  drip: 'delivery',
};

export function stageOf(fault: Fault): Stage {
  return stages[fault.kind];
}

/**
 * Applies a fault to an answer. The `listing` of the result is what a client can still read: nothing after most faults, the
 * same after a delay or a valid compression, and the changed items after damage to items.
 * @param key the API key of the request
 */
export function applyFault(answer: Answer, fault: Fault, key: string): Answer {
  switch (fault.kind) {
    case 'status':
      return withStatus(answer, fault);
    case 'redirect':
      return emptyAnswer(307, { location: fault.to });
    case 'garbage':
      return bodyAnswer(200, garbage(fault.variant));
    case 'items':
      return withItems(answer, (items) => damageItems(items, fault.variant));
    case 'echo':
      return withEcho(answer, fault.where, key);
    case 'content-type':
      return { ...answer, headers: { ...answer.headers, 'content-type': fault.value } };
    case 'oversize':
      return {
        ...jsonAnswer(200, []),
        body: { spaces: fault.bytes },
        chunked: fault.chunked,
      };
    case 'bomb':
      return bodyAnswer(200, gzipBomb(fault.bytes), { 'content-encoding': 'gzip' });
    case 'compression':
      return fault.broken ? compressedBrokenly(answer) : compressed(answer);
    case 'delay':
      return { ...answer, delayMs: fault.ms };
    case 'drip':
      return { ...answer, delivery: fault };
    case 'hang':
    case 'reset':
    case 'truncate':
    default:
      return { ...answer, delivery: fault, listing: undefined };
  }
}

function withStatus(answer: Answer, fault: Fault & { readonly kind: 'status' }): Answer {
  const { code, body } = fault;
  const headers = fault.retryAfter === undefined ? {} : { 'retry-after': fault.retryAfter };
  if (body !== undefined) return bodyAnswer(code, Buffer.from(body), headers);
  if (code === 200) return answer;
  if (code === 304) {
    const repeated = answer.listing?.conditional === true ? answer.listing : undefined;
    return { ...emptyAnswer(304), listing: repeated && { ...repeated, items: undefined } };
  }
  if (code === 422) return validationAnswer('projectid', 'Value is not valid', 'value_error');
  if (code >= 400) return errorAnswer(code, undefined, headers);
  if (code >= 300 || code === 204) return emptyAnswer(code, headers);
  return { ...answer, status: code, listing: undefined };
}

function withItems(
  answer: Answer,
  change: (items: readonly unknown[]) => readonly unknown[],
): Answer {
  const { body, listing } = answer;
  if (!Buffer.isBuffer(body) || listing?.items === undefined || body.length === 0) return answer;
  const items: unknown = JSON.parse(body.toString());
  if (!Array.isArray(items)) return answer;
  const changed = change(items);
  const { etag: _, ...headers } = answer.headers;
  return {
    ...answer,
    headers,
    body: Buffer.from(JSON.stringify(changed)),
    listing: { ...listing, items: statusesOf(changed) },
  };
}

function withEcho(answer: Answer, where: EchoPlace, key: string): Answer {
  switch (where) {
    case 'header':
      return { ...answer, headers: { ...answer.headers, 'x-received-key': key } };
    case 'error':
      return errorAnswer(500, `Unexpected error while the key ${key} was checked.`);
    case 'validation':
      return validationAnswer('projectid', `Not visible to ${key}`, 'value_error');
    case 'redirect':
      return emptyAnswer(307, { location: `https://sso.example.com/login?key=${encodeURI(key)}` });
    case 'item':
    default:
      if (answer.listing === undefined && answer.status === 200) return withEchoedErrorInfo(key);
      return withItems(answer, (items) => [
        ...items,
        { id: `prompt-of-${key}`, name: key, status: 'RUNNING' },
        { id: 'prompt-of-a-key', name: `made by ${key}`, timestamp: key, status: `SEEN ${key}` },
      ]);
  }
}

function withEchoedErrorInfo(key: string): Answer {
  const errorInfo = { error_id: 'UPSTREAM_REFUSED', error_msg: `The provider refused ${key}.` };
  return jsonAnswer(200, { name: key, timestamp: key, status: 'FAILED', error_info: errorInfo });
}

function compressedBrokenly(answer: Answer): Answer {
  const { body } = answer;
  const whole = Buffer.isBuffer(body) && body.length > 0 ? gzip(body) : undefined;
  if (whole === undefined || 'content-encoding' in answer.headers) return answer;
  return {
    ...answer,
    body: whole.subarray(0, Math.floor(whole.length * 0.75)),
    headers: { ...answer.headers, 'content-encoding': 'gzip' },
    listing: undefined,
  };
}

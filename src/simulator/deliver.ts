import { once } from 'node:events';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setInterval, setTimeout } from 'node:timers/promises';
import type { Answer, Delivery, Filler } from './answer.ts';

const BLOCK = Buffer.alloc(64 * 1024, ' ');
const DRIP_MS = 50;

/**
 * Sends an answer in the way that its `delivery` describes.
 * @returns whether the operating system accepted every byte before the connection ended
 */
export async function deliver(response: ServerResponse, answer: Answer): Promise<boolean> {
  const closed = new AbortController();
  response.once('close', () => closed.abort());
  const { signal } = closed;
  try {
    if (answer.delayMs > 0) await setTimeout(answer.delayMs, undefined, { signal, ref: false });
    return await send(response, answer, signal);
  } catch {
    // The client has closed the connection, or the server is closing.
    response.destroy();
    return false;
  }
}

async function send(
  response: ServerResponse,
  answer: Answer,
  signal: AbortSignal,
): Promise<boolean> {
  const { body, delivery } = answer;
  const { socket } = response.req;
  switch (delivery.kind) {
    case 'whole':
      response.writeHead(answer.status, headersOf(answer));
      await pipeline(Buffer.isBuffer(body) ? [body] : blocks(body), response);
      return true;
    case 'drip':
      if (delivery.part === 'headers') {
        const bytes = Buffer.concat([rawHead(answer), bytesOf(body)]);
        await pipeline(drip(bytes, delivery.bytesPerSecond, signal), socket);
      } else {
        response.writeHead(answer.status, headersOf(answer));
        response.flushHeaders();
        await pipeline(drip(bytesOf(body), delivery.bytesPerSecond, signal), response);
      }
      return true;
    case 'hang':
      await once(response, 'close');
      return false;
    case 'truncate':
      await sendPart(response, { ...answer, chunked: delivery.chunked }, delivery.at);
      socket.destroySoon();
      return false;
    case 'reset':
    default:
      await sendUntilReset(response, socket, answer, delivery);
      socket.resetAndDestroy();
      return false;
  }
}

async function sendUntilReset(
  response: ServerResponse,
  socket: Socket,
  answer: Answer,
  { when }: Delivery & { readonly kind: 'reset' },
): Promise<void> {
  if (when === 'body') await sendPart(response, answer);
  if (when === 'headers') {
    const head = rawHead(answer);
    await writeBytes(socket, head.subarray(0, head.length / 2));
  }
}

/**
 * Sends the headers and the first `at` bytes of the body, by default half of it, but never all. Sends nothing of an answer
 * without a body, because its headers alone would be complete.
 */
async function sendPart(response: ServerResponse, answer: Answer, at?: number): Promise<void> {
  const body = bytesOf(answer.body);
  if (body.length === 0) return;
  const part = body.subarray(0, Math.min(at ?? body.length / 2, body.length - 1));
  response.writeHead(answer.status, headersOf(answer));
  response.flushHeaders();
  if (part.length > 0) await writeBytes(response, part);
}

function writeBytes(stream: ServerResponse | Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

function headersOf(answer: Answer): Record<string, string | number> {
  const { body, headers, status } = answer;
  const bare = answer.chunked || status === 204 || status === 304;
  const length = Buffer.isBuffer(body) ? body.length : body.spaces;
  return bare ? { ...headers } : { ...headers, 'content-length': length };
}

function rawHead(answer: Answer): Buffer {
  const headers = { ...headersOf(answer), connection: 'close' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const reason = STATUS_CODES[answer.status] ?? 'Unknown';
  return Buffer.from(`HTTP/1.1 ${answer.status} ${reason}\r\n${lines.join('')}\r\n`, 'latin1');
}

function bytesOf(body: Buffer | Filler): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(body.spaces, ' ');
}

function* blocks({ spaces }: Filler): Generator<Buffer> {
  for (let left = spaces; left > 0; left -= BLOCK.length) yield BLOCK.subarray(0, left);
}

async function* drip(
  bytes: Buffer,
  perSecond: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const pace = Math.max(DRIP_MS, 1000 / perSecond);
  const size = Math.max(1, Math.round((perSecond * pace) / 1000));
  let sent = 0;
  for await (const next of setInterval(pace, size, { signal, ref: false })) {
    yield bytes.subarray(sent, sent + next);
    sent += next;
    if (sent >= bytes.length) return;
  }
}

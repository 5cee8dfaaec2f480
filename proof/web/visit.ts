import { connect as connectPlainly, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { connect as connectSecurely, type SecureContext } from 'node:tls';
import { type Answer, readAnswers } from './answers.ts';
import { type Expected, expect } from './model.ts';
import type { Made } from './requests.ts';
import { PROTECTED, type ServerKind } from './served.ts';

/** Time limit, ms, which only a hanging server reaches. */
const TIMEOUT = 20_000;
/** End of a stream's first text, in chunks or not; silence follows. */
const BEGUN = /retry: \d+\nid: \S+\n\n(?:\r\n)?$/;

export interface Destination {
  readonly kind: ServerKind;
  readonly port: number;
  /** Certificate of the client, with TLS. */
  readonly context?: SecureContext;
}

/**
 * Sends requests one after the other over one connection, in pieces, and compares the answers with the model.
 * @returns each answer with its expectation
 * @throws if an answer is not one that the model allows
 */
export async function visit(
  destination: Destination,
  requests: readonly Made[],
  pieces: () => number,
  assets: readonly string[],
): Promise<readonly (readonly [Expected, Answer])[]> {
  const { text, isReset } = await exchange(destination, requests, pieces);
  const expected = requests.map((request) => expect(request, destination.kind, assets));
  const { answers, rest } = readAnswers(
    text,
    requests.map(({ method }) => method),
  );
  for (const [index, answer] of answers.entries()) {
    const [request, is] = [requests[index], expected[index]];
    if (request === undefined || is === undefined) throw new Error('more answers than requests');
    const fault = faultOf(answer, is, request);
    if (fault !== undefined) throw new Error(`${fault}: ${JSON.stringify(request.bytes)}`);
    if (answer.headers.get('connection') === 'close' && index + 1 < answers.length) {
      throw new Error(
        `an answer after the end of its connection: ${JSON.stringify(request.bytes)}`,
      );
    }
  }
  if (rest.includes(PROTECTED) && expected[answers.length]?.shows === undefined) {
    throw new Error(`a broken answer shows what is protected: ${JSON.stringify(rest)}`);
  }
  const last = answers.at(-1)?.headers;
  const isEnded =
    last?.get('connection') === 'close' || last?.get('content-type') === 'text/event-stream';
  const mayBeSilent = expected.some(({ mayEndConnection }) => mayEndConnection);
  if (answers.length < requests.length && !isEnded && !mayBeSilent && !isReset) {
    throw new Error(
      `${answers.length} answers to ${JSON.stringify(requests.map(({ bytes }) => bytes))}`,
    );
  }
  return answers.map(
    (answer, index) =>
      [expected[index] ?? expect(requests[0] as Made, 'open', []), answer] as const,
  );
}

function faultOf(
  { status, headers, body }: Answer,
  is: Expected,
  { method }: Made,
): string | undefined {
  const seen = `${status} ${JSON.stringify(body.slice(0, 100))}`;
  const isBusy = status === 503 && is.isAdmitted && headers.has('retry-after');
  if (!is.statuses.includes(status) && !isBusy)
    return `${seen} instead of ${is.statuses.join(' or ')} (${is.route})`;
  if (headers.get('x-content-type-options') !== 'nosniff') return `${seen} without nosniff`;
  if ([...headers.keys()].some((name) => name.startsWith('access-control-')))
    return `${seen} lets other origins read it`;
  if (headers.has('content-encoding') && is.route !== 'metrics') return `${seen} is compressed`;
  if (is.shows === undefined && body.includes(PROTECTED)) return `${seen} shows what is protected`;
  // A stream may end before its first text, because another request broke its connection.
  const isSilent = method === 'HEAD' || headers.get('content-type') === 'text/event-stream';
  if (isSilent && body === '') return undefined;
  const isPage = status < 400 || (is.shows !== undefined && status === is.statuses[0]);
  if (isPage)
    return body.includes(is.shows ?? PROTECTED) ? undefined : `${seen} does not show ${is.shows}`;
  const isError = /^\{"error":"(?:[^"\\]|\\.)+"\}$/.test(body);
  return isError && headers.get('content-type') === 'application/json'
    ? undefined
    : `${seen} is no error in JSON`;
}

/** Collects the answer until the server closes the connection, or an endless stream begins. */
async function exchange(
  { port, context }: Destination,
  requests: readonly Made[],
  pieces: () => number,
) {
  const socket: Socket =
    context === undefined
      ? connectPlainly(port, '127.0.0.1')
      : connectSecurely({
          port,
          host: '127.0.0.1',
          secureContext: context,
          rejectUnauthorized: false,
        });
  socket.setNoDelay();
  socket.setEncoding('latin1');
  let text = '';
  let isReset = false;
  const ended = Promise.withResolvers<void>();
  const hangs = setTimeout(
    () => ended.reject(new Error(`no end: ${JSON.stringify(requests)}`)),
    TIMEOUT,
  );
  socket.on('data', (data: string) => {
    text += data;
    if (text.includes('text/event-stream') && BEGUN.test(text)) socket.destroy();
  });
  socket.on('error', () => {
    isReset = true;
  });
  socket.on('close', () => ended.resolve());
  void send(socket, requests, pieces);
  try {
    await ended.promise;
    return { text, isReset };
  } finally {
    clearTimeout(hangs);
    socket.destroy();
  }
}

async function send(
  socket: Socket,
  requests: readonly Made[],
  pieces: () => number,
): Promise<void> {
  const bytes = requests.map((request) => request.bytes).join('');
  const size = Math.ceil(bytes.length / pieces());
  for (let at = 0; at < bytes.length && !socket.destroyed; at += size) {
    socket.write(bytes.slice(at, at + size), 'latin1');
    if (at + size < bytes.length) await setImmediate();
  }
  // A cut connection sends nothing more.
  if (requests.at(-1)?.isBroken && !socket.destroyed) socket.end();
}

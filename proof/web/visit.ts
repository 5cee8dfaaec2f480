import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { type Expected, expect, REFUSALS } from './model.ts';
import type { Made } from './requests.ts';
import { PROTECTED, type ServerKind } from './daemons.ts';

/** Time limit, ms, which only a hanging server reaches. */
const TIMEOUT = 20_000;
/** First text of a stream, which has no end. */
const BEGUN = /\r\ncontent-type: text\/event-stream\r\n[^]*retry: \d+\n/i;

export interface Destination {
  readonly kind: ServerKind;
  readonly port: number;
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
): Promise<readonly (readonly [Expected, Answer])[]> {
  const { text, isReset } = await exchange(destination, requests, pieces);
  const expected = requests.map((request) => expect(request, destination.kind));
  const { answers, rest } = readAnswers(
    text,
    requests.map(({ method }) => method),
  );
  const judged: (readonly [Expected, Answer])[] = [];
  for (const [index, answer] of answers.entries()) {
    const [request, is] = [requests[index], expected[index]];
    if (request === undefined || is === undefined) throw new Error('more answers than requests');
    // Node itself answers what it cannot parse, in place of the answers that are unfinished.
    const isFromNode = answer.status >= 400 && !answer.headers.has('content-type');
    const isExpected =
      is.statuses?.includes(answer.status) === true ||
      expected.slice(index).some(({ mayEndConnection }) => mayEndConnection);
    const fault = isFromNode && isExpected ? undefined : faultOf(answer, is);
    if (fault !== undefined) throw new Error(`${fault}: ${JSON.stringify(request.bytes)}`);
    if (answer.headers.get('connection') === 'close' && index + 1 < answers.length) {
      throw new Error(
        `an answer after the end of its connection: ${JSON.stringify(request.bytes)}`,
      );
    }
    if (!isFromNode) judged.push([is, answer]);
  }
  if (rest.includes(PROTECTED) && expected[answers.length]?.mayShow !== true) {
    throw new Error(`a broken answer shows what is protected: ${JSON.stringify(rest)}`);
  }
  const last = answers.at(-1)?.headers;
  const isEnded =
    last?.get('connection') === 'close' || last?.get('content-type') === 'text/event-stream';
  const hasBody = requests.some(({ headers }) =>
    headers.some(([name]) => /^(?:content-length|transfer-encoding)$/i.test(name)),
  );
  // TCP loses what the client has not read yet if the server closes the connection before it has read all of it.
  const mayBeLost = isReset && (hasBody || requests.length > 1);
  const mayBeSilent = mayBeLost || expected.some(({ mayEndConnection }) => mayEndConnection);
  if (answers.length < requests.length && !isEnded && !mayBeSilent) {
    throw new Error(
      `${answers.length} answers to ${JSON.stringify(requests.map(({ bytes }) => bytes))}`,
    );
  }
  return judged;
}

function faultOf({ status, headers, body }: Answer, is: Expected): string | undefined {
  const seen = `${status} ${JSON.stringify(body.slice(0, 100))}`;
  if (headers.get('x-content-type-options') !== 'nosniff') return `${seen} without nosniff`;
  if ([...headers.keys()].some((name) => name.startsWith('access-control-'))) {
    return `${seen} lets other origins read it`;
  }
  if (!is.mayShow && body.includes(PROTECTED)) return `${seen} shows what is protected`;
  if (is.statuses === undefined) {
    return REFUSALS.includes(status) ? `${seen} instead of an answer` : undefined;
  }
  if (!is.statuses.includes(status)) return `${seen} instead of ${is.statuses.join(' or ')}`;
  const isError = status < 400 || body === '' || /^\{"error":"(?:[^"\\]|\\.)+"\}$/.test(body);
  return isError ? undefined : `${seen} is no error in JSON`;
}

/** Collects the answer until the server closes the connection, or an endless stream begins. */
async function exchange({ port }: Destination, requests: readonly Made[], pieces: () => number) {
  const socket = connect(port, '127.0.0.1');
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
    if (BEGUN.test(text)) socket.destroy();
  });
  socket.on('error', ({ code }: NodeJS.ErrnoException) => {
    isReset = code === 'ECONNRESET' || code === 'EPIPE';
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

export interface Answer {
  readonly status: number;
  /** Values by name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** Decompressed. */
  readonly body: string;
}

interface Answers {
  readonly answers: readonly Answer[];
  /** Bytes after the headers and body; the beginning of another answer, if its connection broke. */
  readonly rest: string;
}

/**
 * Parses the bytes of a connection (latin1) as answers to requests with these methods. The last one may be an unfinished
 * stream.
 * @throws if the bytes are not answers
 */
function readAnswers(text: string, methods: readonly string[]): Answers {
  const answers: Answer[] = [];
  let rest = text;
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n');
    const [first = '', ...lines] = rest.slice(0, end).split('\r\n');
    const [, digits] = /^HTTP\/1\.1 (\d{3}) [A-Za-z' -]+$/.exec(first) ?? [];
    if (end === -1 && rest.startsWith('HTTP/1.1 ')) return { answers, rest };
    if (digits === undefined) throw new Error(`no answer: ${JSON.stringify(rest.slice(0, 200))}`);
    const head = rest;
    rest = rest.slice(end + 4);
    const status = Number(digits);
    if (status === 100) continue;
    const headers = new Map(
      lines.map((line) => {
        const colon = line.indexOf(': ');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 2)] as const;
      }),
    );
    // The parser's refusal has a body for every method, because the parser has not read the method yet.
    const isHead = methods[answers.length] === 'HEAD' && !rest.startsWith('{');
    const body = isHead ? { body: '', rest } : bodyOf(headers, rest);
    if (body === undefined) return { answers, rest: head };
    answers.push({ status, headers, body: isHead ? '' : decompressed(headers, body.body) });
    ({ rest } = body);
  }
  return { answers, rest };
}

function decompressed(headers: ReadonlyMap<string, string>, body: string): string {
  if (headers.get('content-encoding') !== 'gzip') return body;
  return gunzipSync(Buffer.from(body, 'latin1')).toString('latin1');
}

function bodyOf(headers: ReadonlyMap<string, string>, rest: string) {
  if (headers.get('content-type') === 'text/event-stream') return { body: rest, rest: '' };
  if (headers.get('transfer-encoding') === 'chunked') return chunksOf(rest);
  // With HTTP/1.0, the end of the connection may end a body.
  const length = Number(headers.get('content-length') ?? rest.length);
  if (!(length <= rest.length)) return undefined;
  return { body: rest.slice(0, length), rest: rest.slice(length) };
}

function chunksOf(chunks: string) {
  let rest = chunks;
  let body = '';
  for (;;) {
    const [line, digits = ''] = /^([\da-f]+)\r\n/i.exec(rest) ?? [];
    if (line === undefined) return undefined;
    const size = Number.parseInt(digits, 16);
    body += rest.slice(line.length, line.length + size);
    rest = rest.slice(line.length + size + 2);
    if (size === 0) return { body, rest };
  }
}

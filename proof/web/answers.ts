import { gunzipSync } from 'node:zlib';

export interface Answer {
  readonly status: number;
  /** Values by name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** Decompressed. */
  readonly body: string;
}

export interface Answers {
  readonly answers: readonly Answer[];
  /** Bytes after the headers and body; the beginning of another answer, if its connection broke. */
  readonly rest: string;
}

/**
 * Parses the bytes of a connection (latin1) as answers to requests with these methods. The last one may be an unfinished
 * stream.
 * @throws if the bytes are not answers
 */
export function readAnswers(text: string, methods: readonly string[]): Answers {
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
  if (headers.get('transfer-encoding') === 'chunked') return chunksOf(headers, rest);
  // With HTTP/1.0, the end of the connection may end a body.
  const length = Number(headers.get('content-length') ?? rest.length);
  if (!(length <= rest.length)) return undefined;
  return { body: rest.slice(0, length), rest: rest.slice(length) };
}

function chunksOf(headers: ReadonlyMap<string, string>, chunks: string) {
  let rest = chunks;
  let body = '';
  for (;;) {
    const [line, digits = ''] = /^([\da-f]+)\r\n/i.exec(rest) ?? [];
    if (line === undefined) {
      if (rest === '' && headers.get('content-type') === 'text/event-stream') return { body, rest };
      return undefined;
    }
    const size = Number.parseInt(digits, 16);
    body += rest.slice(line.length, line.length + size);
    rest = rest.slice(line.length + size + 2);
    if (size === 0) return { body, rest };
  }
}

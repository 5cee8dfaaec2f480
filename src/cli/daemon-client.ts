import { getCACertificates } from 'node:tls';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { connectionError } from '../client/errors.ts';
import { ApiError, isBug } from '../monitor/errors.ts';
import { UsageError } from './command.ts';

/** Time without a byte after which an answer fails, ms. A stream is silent for 15 s at most. */
const SILENCE_MS = 45_000;
/** Maximum size of an answer. A stream ends there, and is resumed. */
const MAX_BYTES = 64 * 1024 * 1024;
const ERROR = z.object({ error: z.string() });
const DATA = z.record(z.string(), z.unknown()).catch({});

/** An event of the stream; without a type, its beginning or a sign that it is alive. */
export interface StreamEvent {
  readonly type: string | undefined;
  /** Where a stream resumes after it. */
  readonly id: string | undefined;
  readonly data: Readonly<Record<string, unknown>>;
}

type Query = Readonly<Record<string, string | undefined>>;

/** Reads the API of a running daemon. Its errors are for {@link whyUnreachable}. */
export class DaemonClient implements AsyncDisposable {
  /** How far the clock of the daemon is ahead of `performance.now()`, at most, as its last answer says; ms. */
  aheadMs = 0;
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: Agent;

  /** Trusts the certificate authorities of Node and of the system. `login` is `user:password`. */
  constructor(base: URL, login: string | undefined) {
    this.#base = base;
    this.#headers = login
      ? { authorization: `Basic ${Buffer.from(login).toString('base64')}` }
      : {};
    this.#agent = new Agent({
      headersTimeout: SILENCE_MS,
      bodyTimeout: SILENCE_MS,
      maxResponseSize: MAX_BYTES,
      connect: {
        rejectUnauthorized: true,
        ca: [...getCACertificates(), ...getCACertificates('system')],
      },
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#agent.destroy();
  }

  /** Returns the rows of all pages. */
  async rows<Row>(path: string, row: z.ZodType<Row>, query: Query, signal: AbortSignal) {
    const page = z.object({ data: z.array(row), next_cursor: z.string().nullable() });
    const rows: Row[] = [];
    let cursor: string | null = null;
    do {
      const more: Query = cursor === null ? query : { ...query, cursor };
      const body = await this.#get(path, more, signal);
      const { data: answer } = page.safeParse(parse(await body.text()));
      if (answer === undefined) {
        throw new ApiError('invalid_response', `${path} is not that of this version of evalwatch`);
      }
      rows.push(...answer.data);
      cursor = answer.next_cursor;
    } while (cursor !== null);
    return rows;
  }

  /** Follows the events of a project from a position on, by default the present. Yields those that arrive together. */
  async *events(query: Query, signal: AbortSignal): AsyncGenerator<readonly StreamEvent[], void> {
    const body = await this.#get('events', query, signal);
    let rest = '';
    for await (const chunk of body.setEncoding('utf8')) {
      const blocks = `${rest}${chunk}`.split('\n\n');
      rest = blocks.pop() ?? '';
      if (blocks.length > 0) yield blocks.map(toEvent);
    }
  }

  async #get(path: string, query: Query, signal: AbortSignal) {
    const url = new URL(`api/v1/${path}`, this.#base);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, value);
    }
    const options = { dispatcher: this.#agent, headers: this.#headers, signal };
    const sentAt = performance.now();
    const { statusCode, headers, body } = await request(url, options);
    // `Date` has whole seconds.
    this.aheadMs = (Date.parse(String(headers['date'])) + 999 || Date.now()) - sentAt;
    if (statusCode === 200) return body;
    const said = ERROR.safeParse(parse(await body.text())).data?.error;
    const message = `the daemon answers ${statusCode}${said === undefined ? '' : `: ${said}`}`;
    throw new ApiError(statusCode >= 500 ? 'server_error' : 'client_error', message);
  }
}

/**
 * Returns why the daemon does not answer now.
 * @throws {UsageError} if it will not answer later either
 */
export function whyUnreachable(error: unknown): string {
  if (isBug(error)) throw error;
  const isKnown = error instanceof ApiError;
  const { reason, message } = isKnown ? error : connectionError(error, (text) => text);
  if (['network', 'timeout', 'server_error'].includes(reason)) return message;
  throw new UsageError(message);
}

function toEvent(block: string): StreamEvent {
  const lines = block.split('\n').map((line) => /^(\w*): ?(.*)$/.exec(line) ?? []);
  const fields = new Map(lines.map(([, name = '', value = '']) => [name, value]));
  const data = DATA.parse(parse(fields.get('data') ?? ''));
  return { type: fields.get('event'), id: fields.get('id'), data };
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

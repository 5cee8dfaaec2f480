import type { ServerResponse } from 'node:http';
import { finished } from 'node:stream/promises';
import { setTimeout } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Answer } from '../../src/simulator/service.ts';
import type { ServedListing } from '../../test/support/oracle/observation.ts';
import { itemsIn } from '../../test/support/service.ts';

// Faults of a service at low probabilities, so that most of its answers still are good.

/** An answer, and what its client can read of a listing: `last` if it keeps the one that it received before. */
interface Served extends Answer {
  readonly listing: ServedListing | 'last' | undefined;
}

interface Request {
  readonly key: string;
  /** Whether the client has a listing, for which a 304 stands. */
  readonly isConditional: boolean;
}

/** Spoils an answer. */
type Change = (served: Served, request: Request) => Served;
/** Sends an answer. Resolves to whether the operating system has taken all of it. */
type Delivery = (response: ServerResponse, served: Served) => Promise<boolean>;
/** What can happen, with the probability of each. */
type Choices<Choice> = readonly (readonly [probability: number, choice: Choice])[];

/** The limit of the daemon for a body. */
const MEBIBYTE = 1024 * 1024;
const DETAIL = JSON.stringify({ detail: 'a fault' });

function answer(status: number, body: string | Buffer, headers: Answer['headers'] = {}): Change {
  const all = { 'content-type': 'application/json', ...headers };
  return () => ({ status, headers: all, body: Buffer.from(body), listing: undefined });
}

/** Makes a fault that reveals the key of the request. */
function withKey(make: (key: string) => Change): Change {
  return (served, request) => make(request.key)(served, request);
}

/** Makes a fault that changes the items of a listing. */
function items(change: (items: readonly object[]) => readonly unknown[]): Change {
  return (served) => {
    const { listing, headers, body } = served;
    if (typeof listing !== 'object' || body.length === 0) return served;
    const { etag: _, ...others } = headers;
    const changed = change(JSON.parse(body.toString()));
    return {
      ...served,
      headers: others,
      body: Buffer.from(JSON.stringify(changed)),
      listing: { ...listing, items: itemsIn(changed) },
    };
  };
}

function firstItem(change: (item: object) => readonly unknown[]): Change {
  return items(([item, ...others]) => (item === undefined ? [] : [...change(item), ...others]));
}

function firstItemWith(fields: object): Change {
  return firstItem((item) => [{ ...item, ...fields }]);
}

const CONTENT: Choices<Change> = [
  [0.02, answer(500, DETAIL)],
  [0.01, answer(502, DETAIL)],
  [0.01, answer(503, DETAIL, { 'retry-after': '1' })],
  [0.02, answer(429, DETAIL, { 'retry-after': '1' })],
  [0.005, answer(408, DETAIL)],
  [0.005, answer(404, DETAIL)],
  [0.005, answer(204, '')],
  [
    0.005,
    (served, request) => ({
      ...answer(304, '')(served, request),
      listing: served.listing && request.isConditional ? 'last' : undefined,
    }),
  ],
  [0.01, answer(307, '', { location: 'https://sso.example.com/login' })],
  [0.01, answer(200, '<!doctype html><title>Sign in</title><h1>Session expired</h1>')],
  [0.005, answer(200, Buffer.from('[{"id":"caf\xe9","status":"RUNNING"}]', 'latin1'))],
  [0.002, answer(200, `[{"id":"deep","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}]`)],
  [0.005, answer(200, '')],
  [0.001, answer(200, ' '.repeat(2 * MEBIBYTE), { 'transfer-encoding': 'chunked' })],
  [0.001, answer(200, gzipSync(Buffer.alloc(64 * MEBIBYTE, ' ')), { 'content-encoding': 'gzip' })],
  [0.01, firstItemWith({ status: 'PAUSED' })],
  [
    0.01,
    // The same id twice, with the true status last.
    firstItem((item) => {
      const isRunning = 'status' in item && item.status === 'RUNNING';
      return [{ ...item, status: isRunning ? 'FAILED' : 'RUNNING' }, item];
    }),
  ],
  [0.01, firstItemWith({ id: undefined })],
  [0.01, firstItemWith({ status: null })],
  [0.006, firstItemWith({ id: 42 })],
  [0.006, firstItemWith({ id: 'x'.repeat(513) })],
  [0.006, firstItemWith({ id: 'half \ud83d' })],
  [0.006, firstItemWith({ status: undefined })],
  [0.006, firstItemWith({ status: 3 })],
  [
    0.006,
    firstItemWith(JSON.parse('{"__proto__":{"id":"polluted"},"constructor":1,"toString":null}')),
  ],
  [0.006, firstItemWith({ name: 7, timestamp: null, owner: { team: ['x'] } })],
  [0.006, firstItem(() => ['prompt', null])],
  [0.006, items((all) => all.map(() => ({ status: 'RUNNING' })))],
  [
    0.006,
    withKey((key) =>
      items((all) => [
        ...all,
        { id: `prompt-of-${key}`, name: key, status: 'RUNNING' },
        { id: 'prompt-of-a-key', name: `made by ${key}`, timestamp: key, status: `SEEN ${key}` },
      ]),
    ),
  ],
  [0.005, withKey((key) => answer(500, JSON.stringify({ detail: `The key was ${key}.` })))],
  [
    0.006,
    withKey((key) => {
      const detail = [{ loc: ['path', 'projectid'], msg: `Not visible to ${key}`, type: 'value' }];
      return answer(422, JSON.stringify({ detail }));
    }),
  ],
  [
    0.006,
    withKey((key) =>
      answer(307, '', { location: `https://sso.example.com/?key=${encodeURI(key)}` }),
    ),
  ],
  [0.02, (served) => ({ ...served, headers: { ...served.headers, 'content-type': 'text/html' } })],
];

const ENCODINGS: Choices<Change> = [
  [0.5, (served) => compressed(served)],
  [
    0.01,
    (served) => {
      const { body, ...whole } = compressed(served);
      if (body === served.body) return served;
      return { ...whole, body: body.subarray(0, body.length * 0.75), listing: undefined };
    },
  ],
];

function compressed(served: Served): Served {
  const { body, headers } = served;
  if (body.length === 0 || 'content-encoding' in headers) return served;
  return {
    ...served,
    body: gzipSync(body, { level: 1 }),
    headers: { ...headers, 'content-encoding': 'gzip' },
  };
}

const DELAYS_MS: Choices<number> = [
  [0.03, 2000],
  [0.1, 200],
];

/** Makes a delivery that ends early. */
function cut(act: (response: ServerResponse, served: Served) => Promise<void> | void): Delivery {
  return async (response, served) => {
    await act(response, served);
    return false;
  };
}

const DELIVERIES: Choices<Delivery> = [
  [0.01, cut(({ req }) => void req.socket.resetAndDestroy())],
  [
    0.005,
    cut(async ({ req: { socket } }) => {
      await written((done) => socket.write('HTTP/1.1 200 OK\r\ncontent-type: applic', done));
      socket.resetAndDestroy();
    }),
  ],
  [
    0.01,
    cut(async (response, served) => {
      await sendHalf(response, served);
      response.req.socket.resetAndDestroy();
    }),
  ],
  [
    0.01,
    cut(async (response, served) => {
      await sendHalf(response, served);
      response.req.socket.destroySoon();
    }),
  ],
  [
    0.01,
    cut(async (response, served) => {
      const headers = { ...served.headers, 'transfer-encoding': 'chunked' };
      await sendHalf(response, { ...served, headers });
      response.req.socket.destroySoon();
    }),
  ],
  // 2000 bytes a second.
  [
    0.01,
    async (response, served) => {
      const { body } = served;
      let at = 0;
      writeHead(response, served);
      for (; at + 100 < body.length && !response.destroyed; at += 100) {
        response.write(body.subarray(at, at + 100));
        await setTimeout(50, undefined, { ref: false });
      }
      return await end(response, body.subarray(at));
    },
  ],
  [0.002, cut(() => {})],
];

/** Sends the headers and half of the body. Sends nothing of an answer without a body: its headers alone would be whole. */
async function sendHalf(response: ServerResponse, served: Served): Promise<void> {
  if (served.body.length === 0) return;
  writeHead(response, served);
  response.flushHeaders();
  await written((done) => response.write(served.body.subarray(0, served.body.length / 2), done));
}

function written(write: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    write((error) => (error ? reject(error) : resolve()));
  });
}

function writeHead(response: ServerResponse, { status, headers, body }: Served): void {
  const isBare = 'transfer-encoding' in headers || status === 204 || status === 304;
  response.writeHead(status, { ...headers, ...(!isBare && { 'content-length': body.length }) });
}

const whole: Delivery = async (response, served) => {
  writeHead(response, served);
  return await end(response, served.body);
};

/** Ends at once after the last byte: a client that has it may close the connection. */
async function end(response: ServerResponse, rest: Buffer): Promise<true> {
  response.end(rest);
  await finished(response);
  return true;
}

/**
 * Sends an answer with faults. Resolves to the listing that was sent completely, so that the client may have read it.
 * @param random undefined for no faults
 */
export async function sendFaulty(
  response: ServerResponse,
  faultFree: Served,
  request: Request,
  random: (() => number) | undefined,
): Promise<Served['listing']> {
  /** Returns the first that happens. */
  const draw = <Choice>(choices: Choices<Choice>): Choice | undefined =>
    random && choices.find(([probability]) => random() < probability)?.[1];
  let served = faultFree;
  for (const choices of [CONTENT, ENCODINGS]) {
    served = draw(choices)?.(served, request) ?? served;
  }
  const delivery = draw(DELIVERIES) ?? whole;
  const delayMs = draw(DELAYS_MS);
  if (delayMs !== undefined) await setTimeout(delayMs, undefined, { ref: false });
  try {
    return (await delivery(response, served)) ? served.listing : undefined;
  } catch {
    // The client has closed the connection, or the service is closing.
    response.destroy();
    return undefined;
  }
}

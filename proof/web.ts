import { once } from 'node:events';
import { connect } from 'node:net';
import { ask } from '../test/support/ask.ts';
import { randomNumbers } from './random.ts';
import { type Row, SOURCE } from './row.ts';
import { PASSWORD, PROTECTED, type ServerKind, startDaemons, USER } from './web/daemons.ts';
import { type Made, makeRequest } from './web/requests.ts';
import { visit } from './web/visit.ts';

/** Few in the tests, which have no mistake to find. */
const REQUESTS = { tests: 500, short: 4000, long: 200_000 };
/** Concurrent connections; each sends up to {@link MAX_PIPELINED} requests. */
const CONNECTIONS = 4;
const MAX_PIPELINED = 6;

/** Sends raw requests of every kind to daemons with and without protection, and compares the answers with a model. */
export const web: Row = {
  name: 'web',
  judges: ['src/web/'],
  bug: [
    {
      what: 'the login judges the target as it was sent',
      file: 'web/security.ts',
      replace: [
        [
          'users().size > 0',
          "users().size > 0 && !/^\\/-\\/(?:healthy|ready)/.test(context.env.incoming.url ?? '')",
        ],
      ],
      notice: /instead of 401/,
    },
    {
      what: 'the login is checked for GET only',
      file: 'web/security.ts',
      replace: [['users().size > 0', "users().size > 0 && context.req.method === 'GET'"]],
      notice: /instead of 401/,
    },
    {
      what: 'a connection that was let in once is let in again',
      file: 'web/security.ts',
      replace: [
        [
          'users().size > 0 ? login(context, next) : next()',
          'users().size > 0 && !known.has(context.env.incoming.socket) ? login(context, () => next(known.add(context.env.incoming.socket))) : next()',
        ],
        [
          'const login = basicAuth',
          'const known = new WeakSet<object>();\nconst login = basicAuth',
        ],
      ],
      notice: /instead of 401/,
    },
    {
      what: 'a stream is told by the path that was sent',
      file: 'web/app.ts',
      replace: [['limits.get(context.req.path)', "limits.get(context.env.incoming.url ?? '')"]],
      notice: /kept out/,
    },
    {
      what: 'pages of other sites may reload',
      file: 'web/security.ts',
      replace: [["new Set(['GET',", "new Set(['POST', 'GET',"]],
      notice: /instead of 403/,
    },
    {
      what: 'pages of other sites may read answers',
      file: 'web/server.ts',
      replace: [
        [
          "['x-content-type-options', 'nosniff'],",
          "['x-content-type-options', 'nosniff'],\n  ['access-control-allow-origin', '*'],",
        ],
      ],
      notice: /lets other origins read it/,
    },
  ],
  run: async ({ short, seed, print, source = SOURCE }) => {
    const ended = Promise.withResolvers<never>();
    ended.promise.catch(() => {});
    await using daemons = await startDaemons(source, (error) => ended.reject(error));
    const { ports } = daemons;
    const random = randomNumbers(seed);
    const wanted = REQUESTS[!short ? 'long' : source === SOURCE ? 'tests' : 'short'];
    const figures = { sent: 0, answered: 0, busy: 0, protected: 0 };

    async function connection(): Promise<void> {
      const kind: ServerKind = random() < 0.2 ? 'open' : 'login';
      const length = 1 + Math.floor(random() * MAX_PIPELINED);
      const requests: Made[] = [];
      // The last request closes the connection, as one over HTTP/1.0 does by itself.
      while (requests.length < length && (requests.at(-1)?.version ?? '1.1') === '1.1') {
        requests.push(makeRequest({ random, isLast: requests.length === length - 1 }));
      }
      const pieces = () => (random() < 0.8 ? 1 : 1 + Math.floor(random() * 8));
      figures.sent += requests.length;
      const answers = await visit({ kind, port: ports[kind] }, requests, pieces);
      for (const [{ mayShow }, { status, body }] of answers) {
        if (mayShow && status === 503) figures.busy += 1;
        if (body.includes(PROTECTED)) figures.protected += 1;
        figures.answered += 1;
        if (figures.answered % 20_000 === 0) print(`${figures.answered} answers`);
      }
    }
    const over = new AbortController();
    const visitor = async () => {
      while (figures.answered < wanted && !over.signal.aborted) await connection();
    };
    try {
      const visitors = Array.from({ length: CONNECTIONS }, visitor);
      await Promise.race([Promise.all(visitors), ended.promise]);
    } finally {
      over.abort();
    }
    for (const kind of ['open', 'login'] as const) await crowdOut(ports[kind], random);
    const { sent, answered, busy } = figures;
    if (busy > answered / 100) throw new Error(`${busy} of ${answered} were turned away`);
    if (figures.protected === 0) throw new Error('nothing that is protected was shown to anybody');
    return [
      ['requests sent, answered', `${sent}, ${answered}`],
      ['turned away as too many', String(busy)],
      ['with what is protected', String(figures.protected)],
    ];
  },
};

/** More requests than the limit of ordinary answers. */
const CROWD = 40;
const LOGIN = `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString('base64')}`;

/** Holds idle streams with many spellings of their path, and half requests: other requests are answered meanwhile. */
async function crowdOut(port: number, random: () => number): Promise<void> {
  const head = `Host: 127.0.0.1\r\nAuthorization: ${LOGIN}\r\n`;
  const open = (bytes: string) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    return socket.on('error', () => {});
  };
  const spelling = () => {
    const path = Array.from('/api/v1/events', (each) =>
      each !== '/' && random() < 0.3 ? `%${each.charCodeAt(0).toString(16)}` : each,
    );
    const query = random() < 0.3 ? '?type=poll' : '';
    return `${random() < 0.3 ? 'http://127.0.0.1' : ''}${path.join('')}${query}`;
  };
  const halves = Array.from({ length: CROWD }, () => open(`GET /metrics HTTP/1.1\r\n${head}`));
  const streams = Array.from({ length: CROWD }, () =>
    open(`GET ${spelling()} HTTP/1.1\r\n${head}\r\n`),
  );
  await Promise.all(streams.map((socket) => once(socket, 'data')));
  for (const path of ['/metrics', '/', '/api/v1/failures', '/-/healthy']) {
    const { status, text } = await ask(`http://127.0.0.1:${port}${path}`, {
      auth: `${USER}:${PASSWORD}`,
    });
    if (status !== 200) throw new Error(`${path} kept out: ${status} ${text}`);
  }
  for (const socket of [...streams, ...halves]) socket.destroy();
}

import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createSecureContext } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { COMPILE_CACHE } from '../test/support/compile-cache.ts';
import { makeCertificate } from '../test/support/certificates.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { randomNumbers } from './random.ts';
import { type Row, SOURCE } from './row.ts';
import { crowdOut } from './web/crowd.ts';
import { type Made, makeRequest } from './web/requests.ts';
import type { Served, ServerKind } from './web/served.ts';
import { type Destination, visit } from './web/visit.ts';

const CHILD = fileURLToPath(new URL('web/child.ts', import.meta.url));
const REQUESTS = { short: 4000, long: 1_000_000 };
/** Concurrent connections; each sends up to {@link MAX_PIPELINED} requests. */
const CONNECTIONS = 4;
const MAX_PIPELINED = 6;

/** Sends raw requests of every kind to servers with and without protection, and compares the answers with a model. */
export const web: Row = {
  name: 'web',
  judges: ['src/web/'],
  bug: [
    {
      what: 'the guard judges the target as it was sent',
      file: 'web/protection/guarded-server.ts',
      replace: [
        [
          "target.route !== 'probe'",
          "!/^\\/-\\/(?:healthy|ready)(?:\\?|$)/.test(request.url ?? '')",
        ],
      ],
      notice: /401 .* \(probe\)/,
    },
    {
      what: 'an encoded slash is a slash to guard and routes',
      file: 'web/request/target.ts',
      replace: [['/[\\w.~-]/.test(character)', '/[\\w.~/-]/.test(character)']],
      notice: /(?:200|405) .* instead of (?:401|403|404)/,
    },
    {
      what: 'dot segments are passed on',
      file: 'web/request/target.ts',
      replace: [['/\\/\\.{1,2}(?:\\/|$)/.test(canonical)', 'canonical === undefined']],
      notice: /instead of 400 \(bad target\)/,
    },
    {
      what: 'Host may be anything',
      file: 'web/request/host.ts',
      replace: [['([\\w.-]+))(?::', '([^:]+))(?::']],
      notice: /instead of 400 \(bad Host\)/,
    },
    {
      what: 'routes see the Host that was sent',
      file: 'web/server.ts',
      replace: [["request.headers.host = 'evalwatch';", '']],
      notice: /^400 "" instead of (?!400)/,
    },
    {
      what: 'a connection that was let in once is let in again',
      file: 'web/protection/guarded-server.ts',
      replace: [
        [
          "if (verdict === 'wrong') {",
          "if (verdict === 'right') known.add(request.socket);\nif (verdict === 'wrong' && !known.has(request.socket)) {",
        ],
        [
          'const logins = createLogins();',
          'const logins = createLogins();\nconst known = new WeakSet<object>();',
        ],
      ],
      notice: /instead of 401/,
    },
    {
      what: 'a stream is told by the path that was sent',
      file: 'web/limits/requests.ts',
      replace: [
        [
          'const { route } = target;',
          "const route = target.route === 'events' && request.url !== '/api/v1/events' ? 'other' : target.route;",
        ],
      ],
      notice: /kept out/,
    },
    {
      what: 'pages of other sites may reload',
      file: 'web/request/filter.ts',
      replace: [["new Set(['GET',", "new Set(['POST', 'GET',"]],
      notice: /instead of 403/,
    },
    {
      what: 'pages of other sites may read answers',
      file: 'web/request/filter.ts',
      replace: [
        [
          'admit(request, response, handle);',
          "response.setHeader('access-control-allow-origin', '*');\nadmit(request, response, handle);",
        ],
      ],
      notice: /lets other origins read it/,
    },
  ],
  run: async ({ short, seed, print, source = SOURCE }) => {
    await using directory = await temporaryDirectory();
    await using opened = new AsyncDisposableStack();
    const authority = makeCertificate(directory.path, 'authority');
    const server = makeCertificate(directory.path, 'server', authority);
    const client = makeCertificate(directory.path, 'client', authority);
    const stranger = makeCertificate(directory.path, 'stranger');
    const certificates = join(directory.path, 'certificates.json');
    await writeFile(certificates, JSON.stringify({ server, authority }));
    const child = spawn(process.execPath, [CHILD, source, certificates], {
      env: { PATH: process.env['PATH'], ...COMPILE_CACHE },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    opened.defer(() => void child.kill('SIGKILL'));
    const underWay = new Set<readonly Made[]>();
    const started = Promise.withResolvers<Served>();
    const ended = Promise.withResolvers<never>();
    ended.promise.catch(() => {});
    createInterface(child.stdout).once('line', (line) => {
      started.resolve(JSON.parse(line) as Served);
    });
    child.once('exit', (code) => {
      const requests = [...underWay].map((made) => made.map(({ bytes }) => bytes));
      ended.reject(new Error(`the servers ended with ${code} over ${JSON.stringify(requests)}`));
    });
    const { ports, assets } = await Promise.race([started.promise, ended.promise]);
    const contexts = [
      undefined,
      createSecureContext({}),
      createSecureContext({ cert: stranger.cert, key: stranger.key }),
      createSecureContext({ cert: client.cert, key: client.key }),
    ];

    const random = randomNumbers(seed);
    const wanted = short ? REQUESTS.short : REQUESTS.long;
    const figures = new Map<string, number>();
    const count = (name: string) => figures.set(name, (figures.get(name) ?? 0) + 1);
    let answered = 0;
    let sent = 0;

    async function connection(): Promise<void> {
      const dice = random();
      const kind: ServerKind = dice < 0.03 ? 'certificate' : dice < 0.2 ? 'open' : 'login';
      const shows = kind === 'certificate' ? 1 + Math.floor(random() * 3) : 0;
      const hasCertificate = kind === 'certificate' ? shows === 3 : undefined;
      const context = contexts[shows];
      const destination: Destination = { kind, port: ports[kind], ...(context && { context }) };
      const length = 1 + Math.floor(random() * MAX_PIPELINED);
      const requests: Made[] = [];
      // The last request closes the connection, as one over HTTP/1.0 does by itself.
      while (requests.length < length && (requests.at(-1)?.version ?? '1.1') === '1.1') {
        const isLast = requests.length === length - 1;
        requests.push(makeRequest({ random, assets, hasCertificate, isLast }));
      }
      const pieces = () => (random() < 0.8 ? 1 : 1 + Math.floor(random() * 8));
      sent += requests.length;
      underWay.add(requests);
      const answers = await visit(destination, requests, pieces, assets);
      underWay.delete(requests);
      for (const [{ route, statuses }, { status }] of answers) {
        answered += 1;
        count(statuses.includes(status) ? route : 'turned away as too many');
        if (answered % 100_000 === 0) print(`${answered} answers`);
      }
    }
    const over = new AbortController();
    opened.defer(() => over.abort());
    const visitor = async () => {
      while (answered < wanted && !over.signal.aborted) await connection();
    };
    await Promise.race([Promise.all(Array.from({ length: CONNECTIONS }, visitor)), ended.promise]);
    const scrapes = await crowdOut(ports, random);
    const busy = figures.get('turned away as too many') ?? 0;
    if (busy > answered / 100) throw new Error(`${busy} of ${answered} were turned away`);
    return [
      ['requests sent, answered', `${sent}, ${answered}`],
      ...[...figures.keys()]
        .toSorted()
        .map((name) => [name || '/', String(figures.get(name))] as const),
      ['scrapes beside idle streams and half requests', `${scrapes}, none kept out`],
      ['answers other than the model', '0'],
      ['protected bytes without credentials', '0'],
    ];
  },
};

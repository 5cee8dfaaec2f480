import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../../test/support/node-flags.ts';
import { writeConfiguration } from '../../test/support/soak/configuration.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { type Figures, type RowOptions, SOURCE } from '../row.ts';
import { GOOD } from './exchange.ts';
import { formOf } from './form.ts';
import { manyItems } from './many-items.ts';
import type { Asked, Cost } from './measured-engine.ts';
import { tinyChunks } from './tiny-chunks.ts';

const ENGINE = fileURLToPath(new URL('measured-engine.ts', import.meta.url));
/** Timeout that no busy machine reaches: this part measures no time. */
const TIMEOUT = '5m';

const FORMS = {
  tests: { chunks: { plain: 20_000, coded: 2_000 }, items: 5_000, blockMs: 300 },
  short: { chunks: { plain: 1_000_000, coded: 50_000 }, items: 100_000, blockMs: 300 },
  long: { chunks: { plain: 30_000_000, coded: 3_000_000 }, items: 1_000_000, blockMs: 250 },
};
/** Maximum growth of resident memory beyond the data that is kept: buffers, and garbage that is not collected yet. */
const MAX_GROWTH_MIB = { tests: 50, short: 50, long: 200 };
const MEBIBYTE = 1024 * 1024;

type NamedCost = Cost & { readonly name: string };

interface Attack {
  readonly name: string;
  readonly end: string;
  readonly wire: () => Iterable<Buffer>;
  readonly growthMib: number;
}

/**
 * Polls answers in tiny chunks and lists of very many items one by one, and measures the cost of each poll.
 * @throws if a poll has the wrong outcome, takes too much memory, or blocks the event loop for too long
 */
export async function measureCosts({
  short,
  print,
  source = SOURCE,
}: RowOptions): Promise<Figures> {
  const size = formOf({ short, source });
  const form = FORMS[size];
  const growthMib = MAX_GROWTH_MIB[size];
  const chunks = tinyChunks(form.chunks).map(({ name, wire }): Attack => ({
    name,
    wire,
    end: 'ok',
    growthMib,
  }));
  const items = manyItems(form.items).map(({ name, body, end, keptBytes }): Attack => ({
    name,
    end,
    wire: () => unframed(body()),
    growthMib: growthMib + (keptBytes * form.items) / MEBIBYTE,
  }));
  const attacks = [...chunks, ...items];
  await using directory = await temporaryDirectory();
  await using service = await serve(new Map(attacks.map(({ name, wire }) => [name, wire])));
  const projects = attacks.map(({ name: id }) => ({ id, datasets: false }));
  const config = await writeConfiguration(directory.path, service.url, projects, {
    timeout: TIMEOUT,
    service: { retries: 0, max_response_size: '64MiB', max_items: form.items },
  });
  await using engine = await startEngine(source, config);

  async function measure(measured: readonly Attack[]): Promise<string> {
    const costs: NamedCost[] = [];
    for (const attack of measured) {
      const { name, end } = attack;
      service.be('good');
      await engine.poll(name);
      service.be('hostile');
      const cost = await engine.measure(name);
      print(`${name}: ${cost.end}, ${describe(cost)}`);
      if (cost.end !== end) throw new Error(`${name}: ended with ${cost.end}`);
      if (cost.growthMib > attack.growthMib) {
        throw new Error(`${name}: memory grew by ${cost.growthMib} MiB`);
      }
      if (cost.blockMs > form.blockMs) {
        throw new Error(`${name}: the event loop was held up for ${cost.blockMs} ms`);
      }
      costs.push({ ...cost, name });
    }
    return worst(costs);
  }

  return [
    ['tiny chunks, plain and in gzip', await measure(chunks)],
    ['many items of each kind', await measure(items)],
  ];
}

function describe({ growthMib, blockMs }: Cost): string {
  return `${Math.round(growthMib)} MiB, ${Math.round(blockMs)} ms`;
}

function worst(costs: readonly NamedCost[]): string {
  const by = (figure: 'growthMib' | 'blockMs') =>
    costs.toSorted((one, other) => other[figure] - one[figure])[0];
  const [largest, longest] = [by('growthMib'), by('blockMs')];
  return [
    `${costs.length} kinds, at most`,
    `${Math.round(largest?.growthMib ?? NaN)} MiB above idle (${largest?.name}) and`,
    `${Math.round(longest?.blockMs ?? NaN)} ms of CPU time between two turns of the event loop (${longest?.name})`,
  ].join(' ');
}

function* unframed(body: Iterable<Buffer>): Generator<Buffer> {
  yield Buffer.from('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n');
  yield* body;
}

/** Serves each project its own response while hostile, and the good listing otherwise. */
async function serve(wires: ReadonlyMap<string, () => Iterable<Buffer>>) {
  let mood: 'good' | 'hostile' = 'good';
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (request) => {
      const [, project = ''] =
        /^GET \/v2\/projects\/([^/]+)\//.exec(request.toString('latin1')) ?? [];
      const wire = mood === 'hostile' ? wires.get(decodeURIComponent(project)) : undefined;
      void send(socket, wire?.() ?? unframed([Buffer.from(GOOD)]));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    be: (newMood: typeof mood) => {
      mood = newMood;
    },
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

async function send(socket: Socket, wire: Iterable<Buffer>): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  socket.once('close', () => resolve());
  for (const piece of wire) {
    if (socket.destroyed) return;
    if (socket.write(piece)) continue;
    const drained = new Promise<void>((goOn) => socket.once('drain', () => goOn()));
    await Promise.race([drained, closed]);
  }
  socket.end();
}

async function startEngine(source: string, config: string) {
  const child = fork(ENGINE, [source, config], { execArgv: [...NODE_FLAGS, '--expose-gc'] });
  await next(child);
  return {
    poll: async (project: string) => {
      child.send({ project, isMeasured: false } satisfies Asked);
      await next(child);
    },
    measure: async (project: string) => {
      child.send({ project, isMeasured: true } satisfies Asked);
      return (await next(child)) as Cost;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
    },
  };
}

/** Returns a process's next message. @throws if it ends instead */
async function next(child: ChildProcess): Promise<unknown> {
  const ended = new AbortController();
  const end = once(child, 'exit', { signal: ended.signal }).then(() => {
    throw new Error('the process that polls has ended');
  });
  try {
    const [message] = (await Promise.race([once(child, 'message'), end])) as [unknown];
    return message;
  } finally {
    end.catch(() => {});
    ended.abort();
  }
}

import type { Duplex } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { startService } from '../../test/support/service.ts';
import { writeConfiguration } from '../../test/support/soak/configuration.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { randomNumbers } from '../random.ts';
import { type Figures, type RowOptions, SOURCE } from '../row.ts';
import { openEngine } from './engine.ts';
import { chunked } from './exchange.ts';
import { formOf } from './form.ts';

/** Number of concurrent polls, each of its own project. */
const PARALLEL = 16;
/** Bytes between two cuts of a framing. */
const STEPS = { tests: 16, short: 4, long: 1 };
const IDS = ['pending', 'lang \u2013 \u6e2c\u8a66 \u{1f600}', 'q"]}', '__proto__'];

/** Returns some hundred bytes that a parser could stumble over, and each prompt with this status. */
function listingOf(status: string): Buffer {
  const items = IDS.map((id) => ({ id, status, x: [{ y: [1.5e3, null, '\\"]}'] }, 'na\u00efve'] }));
  const text = JSON.stringify(items).replace('na\u00efve', String.raw`na\u00efve \ud83d\ude00 \/`);
  return Buffer.from(text);
}

const KNOWN = listingOf('RUNNING');
const MOVED = listingOf('FAILED');

/** A way to send a response that is cut. */
interface Framing {
  readonly reason: 'invalid_response' | 'network';
  /** Bytes that are cut. */
  readonly bytes: Buffer;
  readonly wire: (cut: Buffer, random: () => number) => Buffer;
  readonly end?: 'reset';
}

const head = (headers: string) => Buffer.from(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\n`);
const framed = (headers: string, body: Buffer) => Buffer.concat([head(headers), body]);
const length = (bytes: Buffer) => `content-length: ${bytes.length}`;
const CHUNKED = 'transfer-encoding: chunked';

const MEBIBYTE = 1024 * 1024;
const RESPONSE = framed(length(MOVED), MOVED);
const PACKED = gzipSync(MOVED);

const FRAMINGS: Readonly<Record<string, Framing>> = {
  'honest length': {
    reason: 'invalid_response',
    bytes: MOVED,
    wire: (cut) => framed(length(cut), cut),
  },
  'lying length, FIN': { reason: 'network', bytes: RESPONSE, wire: (cut) => cut },
  'lying length, reset': { reason: 'network', bytes: RESPONSE, wire: (cut) => cut, end: 'reset' },
  'no length, FIN': {
    reason: 'invalid_response',
    bytes: MOVED,
    wire: (cut) => framed('connection: close', cut),
  },
  'whole chunks': {
    reason: 'invalid_response',
    bytes: MOVED,
    wire: (cut, random) => framed(CHUNKED, chunked(...pieces(cut, random), '')),
  },
  'chunks without the last': {
    reason: 'network',
    bytes: MOVED,
    wire: (cut, random) => framed(CHUNKED, chunked(...pieces(cut, random))),
  },
  'gzip, lying length': {
    reason: 'network',
    bytes: PACKED,
    wire: (cut) => framed(`content-encoding: gzip\r\n${length(PACKED)}`, cut),
  },
  gzip: {
    reason: 'invalid_response',
    bytes: PACKED,
    wire: (cut) => framed(`content-encoding: gzip\r\n${length(cut)}`, cut),
  },
};

function pieces(bytes: Buffer, random: () => number): readonly Buffer[] {
  const found: Buffer[] = [];
  for (let start = 0, end = 0; start < bytes.length; start = end) {
    end = start + 1 + Math.floor(random() * 20);
    found.push(bytes.subarray(start, end));
  }
  return found;
}

/**
 * Serves a listing cut at every byte, in every framing, to a poller whose store already has the prompts.
 * @throws if a poll applies any of it, or fails for a wrong reason
 */
export async function cutEverywhere({
  short,
  seed,
  source = SOURCE,
}: RowOptions): Promise<Figures> {
  await using directory = await temporaryDirectory();
  const random = randomNumbers(seed);
  const answers = new Map<string, (socket: Duplex & { resetAndDestroy?: () => void }) => void>();
  await using service = await startService(({ project = '' }, { socket }) => {
    if (socket !== null) answers.get(project)?.(socket);
  });
  const projects = Array.from({ length: PARALLEL }, (_, n) => ({ id: `p${n}`, datasets: false }));
  const config = await writeConfiguration(directory.path, service.url, projects, {
    service: {
      retries: 0,
      timeout: '30s',
      max_concurrency: PARALLEL * 2,
      max_response_size: '1MiB',
    },
  });
  await using engine = await openEngine(source, config);

  async function poll(id: string, wire: Buffer, end?: 'reset') {
    answers.set(id, (socket) => {
      if (end === undefined) socket.end(wire);
      else socket.write(wire, () => socket.resetAndDestroy?.());
    });
    const finished = await engine.poll(id);
    if (finished === undefined) throw new Error('a poll was cut short');
    return finished;
  }

  const step = STEPS[formOf({ short, source })];
  const cuts = Object.entries(FRAMINGS).flatMap(([name, framing], index) =>
    Array.from({ length: framing.bytes.length }, (_, at) => ({ name, framing, at })).filter(
      ({ at }) => (at + index) % step === 0,
    ),
  );
  const queue = cuts.values();
  await Promise.all(
    projects.map(async ({ id }) => {
      const before = framed(length(KNOWN), KNOWN);
      await poll(id, before);
      for (const { name, framing, at } of queue) {
        const wire = framing.wire(framing.bytes.subarray(0, at), random);
        const { failure, changed } = await poll(id, wire, framing.end);
        if (failure?.reason !== framing.reason || changed) {
          const what = failure === undefined ? 'a partial listing was applied' : failure.reason;
          throw new Error(`${name}, cut at byte ${at} of ${framing.bytes.length}: ${what}`);
        }
      }
      const again = await poll(id, before);
      if (again.failure !== undefined || again.changed) throw new Error(`${id} is not as before`);
    }),
  );
  // A whole listing is applied, so only the cuts were wrong.
  for (const [name, framing] of Object.entries(FRAMINGS)) {
    if (framing.bytes === RESPONSE || framing.reason === 'network') continue;
    const id = 'p0';
    await poll(id, framed(length(KNOWN), KNOWN));
    const { transitions } = await poll(id, framing.wire(framing.bytes, random));
    if (transitions !== IDS.length) throw new Error(`${name}, whole: ${transitions} transitions`);
  }
  const body = gzipSync(Buffer.concat([MOVED, Buffer.alloc(2 * MEBIBYTE, ' ')]));
  const { failure } = await poll('p0', framed(`content-encoding: gzip\r\n${length(body)}`, body));
  if (failure?.reason !== 'too_large') throw new Error('gzip: not too large');
  return [
    [
      'bytes of the listing, cut after each',
      `${MOVED.length}${step > 1 ? `, every ${step}th` : ''}`,
    ],
    ['framings', Object.keys(FRAMINGS).join('; ')],
    ['cut answers, applied', `${cuts.length}, 0`],
  ];
}

import type { Duplex } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { startService } from '../../test/support/service.ts';
import { randomNumbers } from '../random.ts';
import { type Figures, type RowOptions, SOURCE } from '../row.ts';
import { startMonitor } from './monitor.ts';
import { chunked } from './service.ts';

/** Concurrent polls, each of its own project. */
const PARALLEL = 8;
/** Bytes between two cuts of a framing. */
const STEPS = { short: 8, long: 1 };
const IDS = ['pending', 'lang \u2013 \u6e2c\u8a66 \u{1f600}', 'q"]}', '__proto__'];

/** Returns some hundred bytes that a parser could stumble over, and each prompt with this status. */
function listingOf(status: string): Buffer {
  const items = IDS.map((id) => ({ id, status, x: [{ y: [1.5e3, null, '\\"]}'] }, 'na\u00efve'] }));
  const text = JSON.stringify(items).replace('na\u00efve', String.raw`na\u00efve \ud83d\ude00 \/`);
  return Buffer.from(text);
}

const KNOWN = listingOf('RUNNING');
const MOVED = listingOf('FAILED');

/** A way to send an answer that is cut. */
interface Framing {
  readonly reason: 'invalid_response' | 'network';
  /** Bytes that are cut. */
  readonly bytes: Buffer;
  readonly wire: (cut: Buffer, random: () => number) => Buffer;
  readonly end?: 'reset';
}

const framed = (headers: string, body: Buffer) =>
  Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\n`), body]);
const length = (bytes: Buffer) => `content-length: ${bytes.length}`;
const CHUNKED = 'transfer-encoding: chunked';
const CLOSE = 'connection: close\r\n';
const RESPONSE = framed(length(MOVED), MOVED);
const PACKED = gzipSync(MOVED);
const GZIP = 'content-encoding: gzip\r\n';

const FRAMINGS: Readonly<Record<string, Framing>> = {
  'honest length': {
    reason: 'invalid_response',
    bytes: MOVED,
    wire: (cut) => framed(CLOSE + length(cut), cut),
  },
  // These are cut within the head, too.
  'lying length, FIN': { reason: 'network', bytes: RESPONSE, wire: (cut) => cut },
  'lying length, reset': { reason: 'network', bytes: RESPONSE, wire: (cut) => cut, end: 'reset' },
  'no length': {
    reason: 'invalid_response',
    bytes: MOVED,
    wire: (cut) => framed(`${CLOSE}x: y`, cut),
  },
  'whole chunks': {
    reason: 'invalid_response',
    bytes: MOVED,
    wire: (cut, random) => framed(CLOSE + CHUNKED, chunked(...pieces(cut, random), '')),
  },
  'chunks without the last': {
    reason: 'network',
    bytes: MOVED,
    wire: (cut, random) => framed(CHUNKED, chunked(...pieces(cut, random))),
  },
  'gzip, lying length': {
    reason: 'network',
    bytes: PACKED,
    wire: (cut) => framed(GZIP + length(PACKED), cut),
  },
  gzip: {
    reason: 'invalid_response',
    bytes: PACKED,
    wire: (cut) => framed(CLOSE + GZIP + length(cut), cut),
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
 * Serves a listing cut after every byte, in every framing, to a daemon whose store has its prompts.
 * @throws if a poll applies any of it, or fails for a wrong reason
 */
export async function cutEverywhere(options: RowOptions): Promise<Figures> {
  const { short, seed, source = SOURCE } = options;
  const random = randomNumbers(seed);
  const answers = new Map<string, (socket: Duplex & { resetAndDestroy?: () => void }) => void>();
  await using service = await startService(({ project = '' }, { socket }) => {
    if (socket !== null) answers.get(project)?.(socket);
  });
  const projects = Array.from({ length: PARALLEL }, (_, n) => ({ id: `p${n}` }));
  await using monitor = await startMonitor(source, service.url, projects, {
    timeout: '30s',
    max_concurrency: PARALLEL * 2,
  });

  async function poll(id: string, wire: Buffer, end?: 'reset') {
    answers.set(id, (socket) => {
      if (end === undefined) socket.end(wire);
      else socket.write(wire, () => socket.resetAndDestroy?.());
    });
    return await monitor.poll(id);
  }

  const step = short ? STEPS.short : STEPS.long;
  const cuts = Object.entries(FRAMINGS).flatMap(([name, framing], index) =>
    Array.from({ length: framing.bytes.length }, (_, at) => ({ name, framing, at })).filter(
      ({ at }) => (at + index) % step === 0,
    ),
  );
  const queue = cuts.values();
  const known = framed(CLOSE + length(KNOWN), KNOWN);
  await Promise.all(
    projects.map(async ({ id }) => {
      await poll(id, known);
      for (const { name, framing, at } of queue) {
        const wire = framing.wire(framing.bytes.subarray(0, at), random);
        const { ok, reason } = await poll(id, wire, framing.end);
        if (reason !== framing.reason) {
          const what = ok ? 'a partial listing was applied' : reason;
          throw new Error(`${name}, cut at byte ${at} of ${framing.bytes.length}: ${what}`);
        }
      }
      const { ok, transitions } = await poll(id, known);
      if (!ok || transitions > 0) throw new Error(`${id} is not as before`);
    }),
  );
  // A whole listing is applied, so only the cuts were wrong.
  for (const [name, { bytes, wire }] of Object.entries(FRAMINGS)) {
    if (['chunks without the last', 'lying length, reset'].includes(name)) continue;
    await poll('p0', known);
    const { transitions } = await poll('p0', wire(bytes, random));
    if (transitions !== IDS.length) throw new Error(`${name}, whole: ${transitions} transitions`);
  }
  const every = step > 1 ? `, every ${step}th` : '';
  return [
    ['bytes of the listing, cut after each', `${MOVED.length}${every}`],
    ['framings', Object.keys(FRAMINGS).join('; ')],
    ['cut answers', String(cuts.length)],
  ];
}

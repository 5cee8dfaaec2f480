import { crc32, gzipSync } from 'node:zlib';
import {
  type Answer,
  bytes,
  chunked,
  drip,
  echoesOf,
  fin,
  FORGED,
  GOOD,
  nastyText,
  pour,
  reset,
  silence,
  TURNED,
  whole,
} from './service.ts';

/** A kind of hostile answers to a request for a listing. */
interface Kind {
  /** Reasons of the poll's failure that are right, or `ok` for a good listing in an unusual form. */
  readonly ends: readonly string[];
  readonly answers: readonly Answer[];
}

const listing = (body: string | Buffer, headers: object = {}) => whole(200, body, headers);
const all = (...bodies: readonly (string | Buffer)[]) => bodies.map((body) => listing(body));
/** Adds fields to the last item of the good listing. */
const goodWith = (more: string) => `${GOOD.slice(0, -2)},${more}}]`;

const MEBIBYTE = 1024 * 1024;
const MILLION = 1_000_000;
const CHUNKED = { 'transfer-encoding': 'chunked' };
const LENGTH = { 'content-length': TURNED.length };
const GZIP = { 'content-encoding': 'gzip' };
const HALF = TURNED.slice(0, TURNED.length >> 1);
const STATUS = 'HTTP/1.1 200 OK\r\n';
const FRAMED = `${STATUS}content-length: ${TURNED.length}\r\n`;
/** Content that takes far longer than the timeout, a byte at a time. */
const SLOW = ' '.repeat(1000);
const HINT = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n';

/** The good listing in gzip blocks of one byte each, which compress nothing. */
function gzipOfBytes(length: number): Buffer {
  const body = Buffer.from(GOOD.padStart(length));
  const parts = Array.from(body, (byte) => [0, 1, 0, 0xfe, 0xff, byte]).flat();
  const sums = [crc32(body), body.length].flatMap((sum) =>
    [0, 8, 16, 24].map((shift) => (sum >>> shift) & 0xff),
  );
  return Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, ...parts, 1, 0, 0, 0xff, 0xff, ...sums]);
}

/** Returns an answer in HTTP chunks of this many bytes. */
function inChunks(size: number, body: Buffer, headers: object = {}): Answer {
  const frames = Array.from({ length: Math.ceil(body.length / size) }, (_, index) => {
    const chunk = body.subarray(index * size, (index + 1) * size);
    return `${chunk.length.toString(16)}\r\n${chunk.toString('latin1')}\r\n`;
  });
  const end = { ...CHUNKED, ...headers };
  return pour(Buffer.from(`${frames.join('')}0\r\n\r\n`, 'latin1'), 1, end);
}

/** Every kind, by the id of the project that gets its answers. */
export const KINDS: Readonly<Record<string, Kind>> = {
  'no answer': { ends: ['timeout'], answers: [silence] },
  'a slow head': { ends: ['timeout'], answers: [drip(`${STATUS}x: ${SLOW}`)] },
  'a slow body': { ends: ['timeout'], answers: [drip(`[${SLOW}`, {}), drip(TURNED, LENGTH)] },
  'slow chunks': {
    ends: ['timeout'],
    answers: [drip(`1\r\n[\r\n${'1\r\n \r\n'.repeat(99)}`, CHUNKED)],
  },
  'a slow compressed body': { ends: ['timeout'], answers: [drip(gzipSync(TURNED), GZIP)] },
  'a body without an end': {
    ends: ['timeout'],
    answers: [bytes(TURNED, silence, {}), bytes(chunked(TURNED), silence, CHUNKED)],
  },
  'early hints without an end': {
    ends: ['timeout'],
    answers: [
      ({ socket }) => {
        const timer = setInterval(() => socket.write(HINT), 20);
        socket.once('close', () => clearInterval(timer));
      },
    ],
  },
  'endless heads': {
    ends: ['network', 'invalid_response'],
    answers: [
      pour(Buffer.from(`${STATUS}x: ${'x'.repeat(MEBIBYTE)}`), 1, null),
      bytes(STATUS, pour(Buffer.from('a: b\r\n'.repeat(1000)), Infinity, null)),
      pour(Buffer.from(HINT.repeat(100)), Infinity, null),
      pour(Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'.repeat(100)), Infinity, null),
    ],
  },
  redirects: {
    ends: ['redirect'],
    answers: [
      ...[301, 302, 303, 307, 308].map((code) =>
        whole(code, TURNED, ({ elsewhere, key }) => ({ location: `http://${elsewhere}/${key}` })),
      ),
      whole(307, TURNED, ({ elsewhere, key }) => ({ location: `//${elsewhere}/${key}` })),
      whole(307, TURNED, ({ elsewhere, key }) => ({ location: `http://${key}:x@${elsewhere}/` })),
      whole(307, TURNED, ({ key }) => ({ location: `/v2/projects/stolen/prompts/?key=${key}` })),
      whole(307, TURNED, ({ key }) => ({ location: `javascript:alert("${key}")` })),
      whole(307, TURNED, ({ key }) => ({ location: `/?${echoesOf(key).join('&')}` })),
      whole(302, TURNED),
    ],
  },
  'other statuses': {
    ends: ['invalid_response', 'client_error', 'not_found', 'server_error'],
    answers: [
      ...[201, 206, 226, 402, 404, 408, 410, 500, 502, 599, 999].map((code) => whole(code, TURNED)),
      ...[204, 304].map((code) => bytes(`HTTP/1.1 ${code} x\r\netag: "e"\r\n\r\n`)),
      bytes(`HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n`),
    ],
  },
  'errors that echo the key': {
    ends: ['auth', 'client_error', 'validation', 'rate_limited', 'server_error'],
    answers: [400, 401, 403, 407, 422, 503].map((code) =>
      whole(code, ({ key }) =>
        JSON.stringify({ detail: [{ loc: ['path', key], msg: nastyText(key), type: 'echo' }] }),
      ),
    ),
  },
  'come back in an hour': {
    ends: ['rate_limited'],
    answers: [whole(429, '', { 'retry-after': '3600' })],
  },
  'no list': {
    ends: ['invalid_response'],
    answers: [
      whole(200, ({ key }) => `<!doctype html><p>Sign in, ${key}</p>`, {
        'content-type': 'text/html',
      }),
      whole(200, ({ key }) => `{"items":${TURNED},"key":"${key}"}`),
      whole(200, ({ key }) => JSON.stringify(nastyText(key))),
      whole(200, ({ key }) => JSON.stringify([{ id: key }, { name: key }, null, 7, [], ''])),
      ...all('1e999', 'null', '', ' \r\n\t ', TURNED.slice(0, -1), TURNED + TURNED, `${TURNED}\0`),
      ...all(`// x\n${TURNED}`, `${TURNED.slice(0, -1)},]`, TURNED.replace('name', 'na\nme')),
    ],
  },
  'a nesting of ten millions': {
    ends: ['invalid_response'],
    answers: [listing(Buffer.from(`${TURNED.slice(0, -2)},"x":${'['.repeat(10 * MILLION)}`))],
  },
  'a million fields': {
    ends: ['too_large'],
    answers: [
      listing(goodWith(Array.from({ length: MILLION }, (_, n) => `"k${n}":0`).join())),
      listing(goodWith(`"x":{${Array.from({ length: MILLION }, (_, n) => `"k${n}":0`).join()}}`)),
    ],
  },
  'a million items': {
    ends: ['invalid_response', 'too_large'],
    answers: [
      ...all(`[${'0,'.repeat(MILLION)}0]`, `[${'0,'.repeat(MILLION - 1)}0]`),
      listing(`[${Array.from({ length: 500_000 }, (_, n) => `{"status":"X${n}"}`).join()}]`),
    ],
  },
  floods: {
    ends: ['too_large'],
    answers: [
      pour(Buffer.alloc(65_536, ' '), 200_000),
      pour(chunked(Buffer.alloc(65_536, ' ')), Infinity, CHUNKED),
      pour(gzipSync(Buffer.alloc(64 * MEBIBYTE)), Infinity, GZIP),
      pour(Buffer.concat(Array<Buffer>(4096).fill(gzipSync(''))), Infinity, GZIP),
    ],
  },
  'tiny chunks': {
    ends: ['invalid_response'],
    answers: [
      inChunks(1, Buffer.from(GOOD.padStart(MILLION))),
      inChunks(1, gzipOfBytes(50_000), GZIP),
    ],
  },
  'small chunks': {
    ends: ['ok'],
    answers: [
      inChunks(20, Buffer.from(GOOD.padStart(4 * MILLION))),
      inChunks(20, gzipOfBytes(200_000), GZIP),
    ],
  },
  'broken connections': {
    ends: ['network', 'invalid_response'],
    answers: [fin, reset].flatMap((end) => [
      end,
      bytes(FRAMED.slice(0, -9), end),
      bytes('', end, LENGTH),
      bytes(HALF, end, LENGTH),
      bytes(chunked(TURNED), end, CHUNKED),
    ]),
  },
  'broken http': {
    ends: ['network', 'invalid_response'],
    answers: [
      bytes(({ key }) => `HELLO ${key}${FORGED}`),
      bytes(TURNED),
      bytes(`${FRAMED}content-length: ${HALF.length}\r\n\r\n${TURNED}`),
      bytes(`${FRAMED}transfer-encoding: chunked\r\n\r\n${TURNED}`),
      ...['-1', 'all', '9'.repeat(40)].map((length) =>
        bytes(`${STATUS}content-length: ${length}\r\n\r\n${TURNED}`),
      ),
      ...['zz', '-5', 'f'.repeat(17), '2'].map((size) =>
        bytes(`${size}\r\n${TURNED}\r\n0\r\n\r\n`, fin, CHUNKED),
      ),
      bytes(`${STATUS}: ${FORGED}\r\n\r\n${TURNED}`),
      bytes(`${FRAMED}x: \0\r\n\r\n${TURNED}`),
      bytes(({ key }) => `${FRAMED}x: ${key}${FORGED}\r\n\r\n${TURNED}`),
    ],
  },
};

/** Error_ids that a service can give the n-th failure. */
export const ERROR_IDS: readonly ((n: number) => string | null)[] = [
  (n) => `E${n}`,
  (n) => `\u202e${n}\u2066\u200b`,
  (n) => `\0\u001b[31m${n}\r\n# HELP x`,
  (n) => `${n}"} 1\nevalwatch_up{project="beta`,
  () => 'none',
  () => 'other',
  (n) => `${n}${'\u{1f600}'.repeat(16 * 1024)}`,
  (n) => `${'same '.repeat(40)}${n}`,
  (n) => `${n}\ud83d`,
  () => null,
];

/** Ids that can be tracked, but that could break a path or a log line. */
export const ODD_IDS: readonly string[] = ['.', '..', '/../', '%2e%2e', 'a/b?c#d']
  .concat('__proto__', 'constructor', ' ', '\u0001', `line${FORGED}`)
  .concat('\u2028\u202e\u001b[2J', '\u{1f600}'.repeat(512));

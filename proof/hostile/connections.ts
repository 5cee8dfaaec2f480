import { gzipSync } from 'node:zlib';
import {
  bare,
  chunked,
  drip,
  fin,
  FORGED,
  GOOD,
  headOf,
  type Hostility,
  pour,
  reset,
  silence,
  TURNED,
  unframed,
} from './exchange.ts';

const CHUNKED = { 'transfer-encoding': 'chunked' };
const LENGTH = { 'content-length': TURNED.length };
const HALF = TURNED.slice(0, TURNED.length >> 1);
const STATUS = 'HTTP/1.1 200 OK\r\n';
const FRAMED = `${STATUS}content-length: ${TURNED.length}\r\n`;
const EVERY_MS = 1000;
/** Content that takes 1000 s at a byte a second, far longer than the timeout. */
const SLOW = ' '.repeat(1000);

/** A byte a second, nothing or early hints, without an end. */
const SLOW_ONES: Readonly<Record<string, Hostility['answer']>> = {
  hang: silence,
  'a drip of headers': (exchange) => drip(exchange, `${STATUS}x: ${'x'.repeat(500)}`, EVERY_MS),
  'a drip of the body': (exchange) => {
    exchange.socket.write(headOf(exchange, 200));
    drip(exchange, `[${SLOW}`, EVERY_MS);
  },
  'a drip of a body with a length': (exchange) => {
    exchange.socket.write(headOf(exchange, 200, LENGTH));
    drip(exchange, TURNED, EVERY_MS);
  },
  'a drip of chunks': (exchange) => {
    exchange.socket.write(headOf(exchange, 200, CHUNKED));
    drip(exchange, '1\r\n[\r\n'.concat('1\r\n \r\n'.repeat(99)), EVERY_MS);
  },
  'a drip of a compressed body': (exchange) => {
    exchange.socket.write(headOf(exchange, 200, { 'content-encoding': 'gzip' }));
    drip(exchange, gzipSync(TURNED), EVERY_MS);
  },
  'a drip of an error': (exchange) => {
    exchange.socket.write(headOf(exchange, 500));
    drip(exchange, SLOW, EVERY_MS);
  },
  'a drip of a redirect': (exchange) => {
    exchange.socket.write(headOf(exchange, 302, { location: `http://${exchange.elsewhere}/` }));
    drip(exchange, SLOW, EVERY_MS);
  },
  'headers, then silence': unframed(LENGTH, '', silence),
  'half a body, then silence': unframed(LENGTH, HALF, silence),
  'a listing without an end': unframed({}, TURNED, silence),
  'chunks without an end': unframed(CHUNKED, chunked(TURNED), silence),
  'early hints without an end': (exchange) => {
    const hint = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n';
    const timer = setInterval(() => exchange.socket.write(hint), 10);
    exchange.socket.once('close', () => clearInterval(timer));
  },
  'early hints in a flood': (exchange) => {
    const hints = Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100));
    const timer = setInterval(() => exchange.socket.write(hints), 50);
    exchange.socket.once('close', () => clearInterval(timer));
  },
};

/** Outcomes that depend on what has arrived, unlike those of the group. */
const ENDINGS: Readonly<Record<string, Hostility['ends']>> = {
  'a drip of an error': ['server_error'],
  'a drip of a redirect': ['redirect'],
  'early hints in a flood': ['invalid_response'],
};

const BROKEN_ONES: Readonly<Record<string, Hostility['answer']>> = {
  'a FIN before the answer': fin,
  'a reset before the answer': reset,
  'a FIN within the headers': bare(FRAMED.slice(0, -9)),
  'a reset within the headers': bare(FRAMED.slice(0, -9), reset),
  'a FIN after the headers': unframed(LENGTH, '', fin),
  'a reset after the headers': unframed(LENGTH, '', reset),
  'a FIN within the body': unframed(LENGTH, HALF, fin),
  'a reset within the body': unframed(LENGTH, HALF, reset),
  'a FIN one byte before the end': unframed(LENGTH, TURNED.slice(0, -1), fin),
  'a FIN within a chunk': unframed(CHUNKED, chunked(TURNED).subarray(0, -9), fin),
  'a FIN without the last chunk': unframed(CHUNKED, chunked(TURNED), fin),
  'a reset without the last chunk': unframed(CHUNKED, chunked(TURNED), reset),
  'not http': bare(({ key }) => `HELLO ${key}${FORGED}`),
  'http of the very first day': bare(TURNED),
  'a change of protocol': bare(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n${TURNED}`,
  ),
  'go on, without an end': (exchange) => {
    pour(exchange, () => Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'));
  },
  'two lengths': bare(`${FRAMED}content-length: ${HALF.length}\r\n\r\n${TURNED}`),
  'a length twice': bare(`${FRAMED}content-length: ${TURNED.length}\r\n\r\n${TURNED}`),
  'a length and chunks': bare(`${FRAMED}transfer-encoding: chunked\r\n\r\n${TURNED}`),
  'a negative length': bare(`${STATUS}content-length: -1\r\n\r\n${TURNED}`),
  'a length in words': bare(`${STATUS}content-length: all\r\n\r\n${TURNED}`),
  'a length beyond numbers': bare(`${STATUS}content-length: ${'9'.repeat(40)}\r\n\r\n${TURNED}`),
  'a chunk without a size': unframed(CHUNKED, `zz\r\n${TURNED}\r\n0\r\n\r\n`, fin),
  'a chunk of a negative size': unframed(CHUNKED, `-5\r\n${TURNED}\r\n0\r\n\r\n`, fin),
  'a chunk beyond numbers': unframed(CHUNKED, `${'f'.repeat(17)}\r\n${TURNED}\r\n0\r\n\r\n`, fin),
  'a chunk that is longer': unframed(CHUNKED, `2\r\n${TURNED}\r\n0\r\n\r\n`, fin),
  'a length in the trailers': unframed(
    CHUNKED,
    Buffer.concat([chunked(TURNED), Buffer.from('0\r\ncontent-length: 3\r\n\r\n')]),
    silence,
  ),
  'a header of 1 MiB': bare(`${STATUS}x: ${'x'.repeat(1024 * 1024)}`, silence),
  '100,000 headers': bare(`${STATUS}${'a: b\r\n'.repeat(100_000)}`, silence),
  'headers without an end': (exchange) => {
    exchange.socket.write(STATUS);
    pour(exchange, () => Buffer.from('a: b\r\n'.repeat(1000)));
  },
  'a header without a name': bare(`${STATUS}: ${FORGED}\r\n\r\n${TURNED}`),
  'a zero byte in a header': bare(`${FRAMED}x: \0\r\n\r\n${TURNED}`),
  'a forged line in the headers': bare(({ key }) => `${FRAMED}x: ${key}${FORGED}\r\n\r\n${TURNED}`),
};

/** Unusual, but good listings. */
const STRANGE_ONES: Readonly<Record<string, Hostility['answer']>> = {
  'http of tomorrow': bare(`HTTP/2.0 200 OK\r\n\r\n${GOOD}`),
  'no length and a FIN': unframed({}, GOOD, fin),
  'a byte a chunk': unframed(
    CHUNKED,
    Buffer.concat([chunked(...GOOD.split('')), chunked('')]),
    (exchange) => exchange.answered(),
  ),
  trailers: unframed(
    { ...CHUNKED, trailer: 'x' },
    Buffer.concat([chunked(GOOD), Buffer.from('0\r\nx: y\r\nlocation: /\r\n\r\n')]),
    (exchange) => exchange.answered(),
  ),
  'early hints before the listing': bare(
    `HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: ${GOOD.length}\r\n\r\n${GOOD}`,
  ),
  'a listing, and the connection stays': unframed(
    { 'content-length': GOOD.length, connection: 'close' },
    GOOD,
    (exchange) => exchange.answered(),
  ),
};

/** Good listings with a sequel that may break the connection before the listing is read. */
const AFTERMATHS: Readonly<Record<string, Hostility['answer']>> = {
  'a reset after the body': unframed(
    { 'content-length': GOOD.length, connection: 'close' },
    GOOD,
    reset,
  ),
  'a second answer at once': unframed(
    { 'content-length': GOOD.length },
    `${GOOD}${FRAMED}\r\n${TURNED}`,
    fin,
  ),
};

/** Hostile behaviour of a connection, below and within HTTP. */
export const CONNECTIONS: Readonly<Record<string, Hostility>> = {
  ...ending(SLOW_ONES, ['timeout']),
  // What is not HTTP is an invalid response; where it ends, and lengths that do not match, are failures of the network.
  ...ending(BROKEN_ONES, ['network', 'invalid_response']),
  ...ending(STRANGE_ONES, ['ok']),
  ...ending(AFTERMATHS, ['ok', 'network', 'invalid_response']),
};

function ending(
  answers: Readonly<Record<string, Hostility['answer']>>,
  ends: Hostility['ends'],
): Readonly<Record<string, Hostility>> {
  return Object.fromEntries(
    Object.entries(answers).map(([name, answer]) => [
      name,
      { ends: ENDINGS[name] ?? ends, answer },
    ]),
  );
}

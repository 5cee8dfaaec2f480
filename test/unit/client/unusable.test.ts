import { once } from 'node:events';
import dns from 'node:dns';
import { createSecureServer, createServer } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { answering, connect, failureOf, KEY, listOptions, raw, RUNNING, serve } from './harness.ts';
import { parseJson } from '../../../src/client/json.ts';
import { createScrub } from '../../../src/client/secrets.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** Returns the failure of a listing at an address. */
async function failureAt(baseUrl: string, options = {}) {
  const { service } = connect({ baseUrl, ...options });
  const { reason, message } = await failureOf(service.list('p', 'prompt', listOptions()));
  return `${reason}: ${message}`;
}

async function failureOfBody(body: string | Buffer, headers = {}) {
  const { url } = await serve(answering(200, body, headers));
  return await failureAt(url);
}

const JSON_TYPE = { 'content-type': 'application/json' };
const ITEM = '{"id":"a","status":"FAILED"}';

it.each<[string, string | Buffer, string]>([
  [
    'HTML',
    `<!doctype html>\n<title>Sign in, ${KEY}</title>`,
    'the body is not a JSON array; it is HTML or XML, such as a page to log in; its content type is "application/json"; it begins "<!doctype html> <title>Sign in, [redacted]</title>"',
  ],
  [
    'nothing',
    '',
    'the body is not a JSON array; it is empty; its content type is "application/json"',
  ],
  [
    'null',
    'null',
    'the body is not a JSON array; it is null; its content type is "application/json"; it begins "null"',
  ],
  [
    'a wrapper',
    `{"count":1,"items":[${ITEM}]}`,
    `the body is not a JSON array; it is an object with an array in the field "items"; its content type is "application/json"; it begins "{\\"count\\":1,\\"items\\":[{\\"id\\":\\"a\\",\\"status\\":\\"FAILED\\"}]}"`,
  ],
  [
    'a detail',
    '{"detail":"no"}',
    'the body is not a JSON array; it is an object; its content type is "application/json"; it begins "{\\"detail\\":\\"no\\"}"',
  ],
  [
    'JSON lines',
    `${ITEM}\n${ITEM}\n`,
    `the body is not a JSON array; it is an object on each line (NDJSON); its content type is "application/json"; it begins "{\\"id\\":\\"a\\",\\"status\\":\\"FAILED\\"} {\\"id\\":\\"a\\",\\"status\\":\\"FAILED\\"}"`,
  ],
  [
    'a prefix',
    `)]}',\n[${ITEM}]`,
    `the body is not a JSON array; it is no JSON, or has something before it; its content type is "application/json"; it begins ")]}', [{\\"id\\":\\"a\\",\\"status\\":\\"FAILED\\"}]"`,
  ],
  [
    'UTF-16',
    Buffer.from('\ufeff[]', 'utf16le'),
    'the body is not a JSON array; it is UTF-16, and must be UTF-8; its content type is "application/json"; it begins "[]"',
  ],
  [
    'UTF-16 without a mark',
    Buffer.from('[7]', 'utf16le').swap16(),
    'the body is not a JSON array; it is UTF-16, and must be UTF-8; its content type is "application/json"; it begins "[7]"',
  ],
  [
    'NaN',
    `[{"id":"${KEY}","status":NaN}]`,
    `the body is not JSON: Unexpected token 'N' near ",\\"status\\":NaN}]"; its content type is "application/json"; it begins "[{\\"id\\":\\"[redacted]\\",\\"status\\":NaN}]"`,
  ],
  [
    'a comma too many',
    '[{"id":"a",}]',
    'the body is not JSON: Expected double-quoted property name near "[{\\"id\\":\\"a\\",}]"; its content type is "application/json"; it begins "[{\\"id\\":\\"a\\",}]"',
  ],
  [
    'the key of a request, cut',
    `<p>${'x'.repeat(190)}${KEY}`,
    `the body is not a JSON array; it is HTML or XML, such as a page to log in; its content type is "application/json"; it begins "<p>${'x'.repeat(190)}[redact"`,
  ],
  [
    'numeric ids',
    '[{"id":4711,"status":"FAILED"}]',
    'no item of the listing is usable: the id of item 0 is the number 4711, and must be a text of 1 to 512 characters without a key; its content type is "application/json"; it begins "[{\\"id\\":4711,\\"status\\":\\"FAILED\\"}]"',
  ],
  [
    'other fields',
    '[{"uuid":"a","state":"FAILED"}]',
    'no item of the listing is usable: item 0 has no field id, but "uuid", "state"; its content type is "application/json"; it begins "[{\\"uuid\\":\\"a\\",\\"state\\":\\"FAILED\\"}]"',
  ],
  [
    'no status',
    '[{"id":"a"}]',
    'no item of the listing is usable: item 0 has no field status, but "id"; its content type is "application/json"; it begins "[{\\"id\\":\\"a\\"}]"',
  ],
  [
    'texts',
    `["${KEY}"]`,
    'no item of the listing is usable: item 0 is the text "[redacted]", not an object; its content type is "application/json"; it begins "[\\"[redacted]\\"]"',
  ],
])('a listing that is %s fails with a message that says so', async (_, body, message) => {
  expect(await failureOfBody(body, JSON_TYPE)).toBe(`invalid_response: ${message}`);
});

it('a detail that cannot be used fails with a message that says what came', async () => {
  const { url } = await serve(answering(200, '[]'));
  const { service } = connect({ baseUrl: url });
  const { message } = await failureOf(service.getErrorInfo('p', 'id', RUNNING));
  expect(message).toBe(
    'the body is not an object; it is an array; it has no content type; it begins "[]"',
  );
});

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

it.each([
  [
    'is not HTTP',
    'SSH-2.0-OpenSSH_9.2\r\n',
    'invalid_response: the answer is not HTTP/1.1: Expected HTTP/, RTSP/ or ICE/: "SSH-2.0-OpenSSH_9.2\\r\\n"',
  ],
  [
    'is an alert of TLS',
    '\x15\x03\x01\0\x02\x02\x50',
    'invalid_response: there is TLS at this port: the address must begin with https://',
  ],
  [
    'has a broken header',
    `HTTP/1.1 200 OK\r\n${KEY} z\r\n\r\n`,
    'invalid_response: the answer is not HTTP/1.1: Invalid header token',
  ],
  [
    'has huge headers',
    `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`,
    'invalid_response: the headers of the answer are larger than 16384 bytes',
  ],
])('an answer that %s is no failure of the network', async (_, bytes, message) => {
  const { url } = await serve(raw(Buffer.from(bytes, 'latin1')));
  expect(await failureAt(url)).toBe(message);
});

it('a service that speaks only HTTP/2 is named, with and without TLS', async () => {
  await using directory = await temporaryDirectory();
  const { key, cert } = makeCertificate(directory.path, 'service');
  const secure = createSecureServer({ key, cert });
  const message = 'the service speaks only HTTP/2, and evalwatch HTTP/1.1';
  expect(await failureAt(`http://127.0.0.1:${await portOf(createServer())}`)).toBe(
    `invalid_response: ${message}`,
  );
  expect(await failureAt(`https://127.0.0.1:${await portOf(secure)}`, { authorities: cert })).toBe(
    `tls: ${message}`,
  );
});

it('a port without TLS is named', async () => {
  const { url } = await serve(answering(200, '[]'));
  expect(await failureAt(url.replace('http:', 'https:'))).toBe(
    'tls: there is no TLS at this port: check the port, and whether the address must begin with http://',
  );
});

it('a name that DNS does not know, and DNS that does not answer, are named', async () => {
  expect(await failureAt('http://nowhere.invalid')).toMatch(
    /^network: DNS .+ the name nowhere\.invalid \(E/,
  );
  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(() => {});
  onTestFinished(() => lookup.mockRestore());
  expect(await failureAt('http://slow.example', { timeoutMs: 300 })).toBe(
    'timeout: DNS did not resolve the name slow.example (ETIMEDOUT)',
  );
});

it('says that a body is JSON but for the key in it', () => {
  const key = 'with"a-quote';
  const body = Buffer.from(`{"name":"${key}"}`);
  expect(() => parseJson(body, createScrub([key]))).toThrow(
    'the body is not JSON: the API key in it is not escaped',
  );
});

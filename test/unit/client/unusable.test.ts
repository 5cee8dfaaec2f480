import { expect, it } from 'vitest';
import { answering, connect, failureOf, KEY, listOptions, raw, RUNNING, serve } from './harness.ts';

/** Returns the failure of a listing at an address. */
async function failureAt(baseUrl: string) {
  const { service } = connect({ baseUrl });
  const { reason, message } = await failureOf(service.list('p', 'prompt', listOptions()));
  return `${reason}: ${message}`;
}

it.each<[string, string, string]>([
  [
    'HTML',
    `<!doctype html>\n<title>Sign in, ${KEY}</title>`,
    'the body is not a JSON array; its content type is "text/html"; it begins "<!doctype html> <title>Sign in, [redacted]</title>"',
  ],
  [
    'the key of a request, cut',
    `<p>${'x'.repeat(190)}${KEY}`,
    `the body is not a JSON array; its content type is "text/html"; it begins "<p>${'x'.repeat(190)}[redact"`,
  ],
  ['nothing', '', 'the body is not a JSON array; its content type is "text/html"; it is empty'],
  [
    'NaN',
    `[{"id":"${KEY}","status":NaN}]`,
    `the body is not JSON: Unexpected token 'N' near ",\\"status\\":NaN}]"; its content type is "text/html"; it begins "[{\\"id\\":\\"[redacted]\\",\\"status\\":NaN}]"`,
  ],
  [
    'a comma too many',
    '[{"id":"a",}]',
    'the body is not JSON: Expected double-quoted property name near "[{\\"id\\":\\"a\\",}]"; its content type is "text/html"; it begins "[{\\"id\\":\\"a\\",}]"',
  ],
  [
    'a list of numbers',
    '[1,2]',
    'no item of the listing is usable: item 0 has no usable id: 1; its content type is "text/html"; it begins "[1,2]"',
  ],
  [
    'other fields',
    `[{"uuid":"${KEY}"}]`,
    'no item of the listing is usable: item 0 has no usable id: {"uuid":"[redacted]"}; its content type is "text/html"; it begins "[{\\"uuid\\":\\"[redacted]\\"}]"',
  ],
  [
    'no status',
    '[{"id":"a"}]',
    'no item of the listing is usable: item 0 has no usable status: {"id":"a"}; its content type is "text/html"; it begins "[{\\"id\\":\\"a\\"}]"',
  ],
])('a listing that is %s fails with a message that says so', async (_, body, message) => {
  const { url } = await serve(answering(200, body, { 'content-type': 'text/html' }));
  expect(await failureAt(url)).toBe(`invalid_response: ${message}`);
});

it('a detail that cannot be used fails with a message that says what came', async () => {
  const { url } = await serve(answering(200, '[]'));
  const { service } = connect({ baseUrl: url });
  const { message } = await failureOf(service.getErrorInfo('p', 'id', RUNNING));
  expect(message).toBe('the body is not an object; it has no content type; it begins "[]"');
});

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

it('a port without TLS is named', async () => {
  const { url } = await serve(answering(200, '[]'));
  expect(await failureAt(url.replace('http:', 'https:'))).toBe(
    'tls: there is no TLS at this port: check the port, and whether the address must begin with http://',
  );
});

it('a name that DNS does not know is named', async () => {
  expect(await failureAt('http://nowhere.invalid')).toMatch(/^network: .+ nowhere\.invalid/);
});

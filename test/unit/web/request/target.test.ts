import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readTarget } from '../../../../src/web/request/target.ts';

function read(url: string, headers: Record<string, string[]> = { host: ['x'] }) {
  const rawHeaders = Object.entries(headers).flatMap(([name, values]) =>
    values.flatMap((value) => [name, value]),
  );
  return readTarget({ url, httpVersion: '1.1', rawHeaders });
}

describe('request path parsing', () => {
  it.each([
    ['/', '/', ''],
    ['/metrics?a=/../b&c=\\', '/metrics', '?a=/../b&c=\\'],
    ['/%6Detric%73', '/metrics', ''],
    ['/%2D/ready', '/-/ready', ''],
    ['//metrics', '//metrics', ''],
    ['/metrics/', '/metrics/', ''],
    ['/-/healthy%3fx', '/-/healthy%3Fx', ''],
    ['/api%2fv1', '/api%2Fv1', ''],
    ['/projects/a%2Fb%20%C3%bc%25', '/projects/a%2Fb%20%C3%BC%25', ''],
    ['/projects/100%', '/projects/100%25', ''],
    ['/projects/%zz%2', '/projects/%25zz%252', ''],
    ['/projects/%252e%252e', '/projects/%252e%252e', ''],
    ['/projects/...', '/projects/...', ''],
    ['/projects/<"a"|b^c`[d]{e}>', '/projects/%3C%22a%22%7Cb%5Ec%60%5Bd%5D%7Be%7D%3E', ''],
    ['/projects/%00%0a', '/projects/%00%0A', ''],
    ['http://x', '/', ''],
    ['HTTPS://x:1?q', '/', '?q'],
    ['http://[::1]/metrics', '/metrics', ''],
  ])('normalizes %s to %s', (url, path, search) => {
    expect(read(url)).toMatchObject({ path, search });
  });

  it.each(
    [
      ['', '*', 'x', 'x:1', 'metrics', '?', 'ftp://x/', 'http:/x', 'http:x'],
      ['http://', 'http:///a', 'http://a@x/', 'http://x y/', 'http://x\\/', 'http://x:99999/'],
      ['/.', '/..', '/./a', '/a/..', '/a/../b', '/%2e', '/a/%2E%2e/b', '/.%2e/', 'http://x/..'],
      ['/a#b', '/a?b#c', '/a\\b', '/a b', '/a\tb', '/a\0', '/a?b\u007f', '/ü', '/a?\u00ff'],
    ].flat(),
  )('rejects %j with 400', (url) => {
    expect(() => read(url)).toThrow(expect.objectContaining({ status: 400 }));
  });

  it('returns a path that does not change when it is parsed as a URL or again', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '/',
        '%',
        '%2',
        '%2e',
        '%2F',
        '%5c',
        '%25',
        '.',
        ';',
        '?',
        '"',
        '|',
        '^',
        '[',
        'a',
      ),
      fc.string({ unit: 'grapheme-ascii', maxLength: 2 }),
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        let is: ReturnType<typeof read>;
        try {
          is = read(`/${pieces.join('')}`);
        } catch {
          return;
        }
        const url = new URL(`http://x${is.path}${is.search}`);
        expect([url.host, url.pathname]).toEqual(['x', is.path]);
        expect(read(is.path + is.search)).toEqual(is);
      }),
      { numRuns: 3000 },
    );
  });
});

describe('the route', () => {
  it.each([
    ['/-/healthy', 'probe'],
    ['/-/ready?x', 'probe'],
    ['/metrics', 'metrics'],
    ['http://other/%6detrics', 'metrics'],
    ['/api/v1/event%73?type=poll', 'events'],
    ['/api/v1/events/', 'other'],
    ['/METRICS', 'other'],
    ['/-/healthyx', 'other'],
    ['/-/reload', 'other'],
    ['/', 'other'],
  ])('of %s is %s', (url, route) => {
    expect(read(url).route).toBe(route);
  });
});

describe('Host header', () => {
  it.each([
    ['evalwatch', 'evalwatch', undefined, false],
    ['Evalwatch_1.Example.COM.:10570', 'evalwatch_1.example.com', 10_570, false],
    ['10.1.2.3:80', '10.1.2.3', 80, true],
    ['[::1]:10570', '::1', 10_570, true],
    ['[FE80::A]', 'fe80::a', undefined, true],
    ['x:', 'x', undefined, false],
    ['999.1.1.1', '999.1.1.1', undefined, false],
  ])('is parsed: %s', (text, name, port, isAddress) => {
    expect(read('/', { host: [text] }).host).toEqual({ name, port, isAddress });
  });

  it.each(
    [
      ['', '.', ':1', 'x:y', 'x:-1', 'x:65536', 'x:000001', 'a@x', 'x/', 'x?', 'x#', 'x\\', 'x y'],
      ['[::1', '[1.2.3.4]', '[::1%25eth0]', '::1', 'x,y', '¾', 'ü.example', '%41', 'x'.repeat(255)],
    ].flat(),
  )('is rejected: %j', (text) => {
    expect(() => read('/', { host: [text] })).toThrow('Host must be a host name or an IP address');
  });

  it('is overridden by a target in absolute form, but must still be valid', () => {
    expect(read('http://other:1/').host).toMatchObject({ name: 'other', port: 1 });
    expect(() => read('http://other/', { host: ['a/b'] })).toThrow('Host must be');
  });

  it('may be missing over HTTP/1.0 only', () => {
    const without = (httpVersion: string) => readTarget({ url: '/', httpVersion, rawHeaders: [] });
    expect(without('1.0').host).toBeUndefined();
    expect(() => without('1.1')).toThrow('the Host header is missing');
    expect(() => without('2.0')).toThrow('only HTTP/1.1');
  });

  it.each(['host', 'authorization'])('is rejected with a second %s header', (name) => {
    expect(() => read('/', { host: ['x'], [name]: ['x', 'x'] })).toThrow('more than once');
    const rawHeaders = ['Host', 'x', name.toUpperCase(), 'y', name, 'z'];
    const twice = () => readTarget({ url: '/', httpVersion: '1.1', rawHeaders });
    expect(twice).toThrow('more than once');
  });

  it('is not taken from the value of another header', () => {
    const rawHeaders = ['X-Header', 'host', 'Host', 'x', 'Via', 'Host'];
    expect(readTarget({ url: '/', httpVersion: '1.1', rawHeaders }).host?.name).toBe('x');
  });

  // Node before 24.14.1 throws when headersDistinct meets a header named __proto__.
  it('is read from raw headers alone', () => {
    const request = {
      url: '/',
      httpVersion: '1.1',
      rawHeaders: ['Host', 'x', '__proto__', 'y'],
      get headersDistinct(): never {
        throw new TypeError('dest[field].push is not a function');
      },
    };
    expect(readTarget(request).host?.name).toBe('x');
  });
});

import { describe, expect, it } from 'vitest';
import { faultSyntax, parseFaults } from '../../../src/simulator/faults/fault-text.ts';
import type { Fault } from '../../../src/simulator/faults/fault.ts';

describe('parseFaults', () => {
  it.each<[string, number, Fault]>([
    ['status=500:0.05', 0.05, { kind: 'status', code: 500, retryAfter: undefined }],
    ['status=503/120', 1, { kind: 'status', code: 503, retryAfter: '120' }],
    ['delay=2s:.5', 0.5, { kind: 'delay', ms: 2000 }],
    ['delay=1.5m', 1, { kind: 'delay', ms: 90_000 }],
    ['hang:1', 1, { kind: 'hang' }],
    ['hang:0', 0, { kind: 'hang' }],
    ['reset:0.02', 0.02, { kind: 'reset', when: 'body' }],
    ['reset=headers', 1, { kind: 'reset', when: 'headers' }],
    ['truncate:0.01', 0.01, { kind: 'truncate', chunked: false }],
    ['truncate-chunked=0', 1, { kind: 'truncate', at: 0, chunked: true }],
    ['garbage', 1, { kind: 'garbage', variant: 'text' }],
    ['garbage=nesting:0.1', 0.1, { kind: 'garbage', variant: 'nesting' }],
    ['redirect:0.01', 0.01, { kind: 'redirect', to: 'https://sso.example.com/login' }],
    [
      'redirect=http://127.0.0.1:8080/x:0.5',
      0.5,
      { kind: 'redirect', to: 'http://127.0.0.1:8080/x' },
    ],
    ['drip=100', 1, { kind: 'drip', part: 'body', bytesPerSecond: 100 }],
    ['drip-headers=1KiB', 1, { kind: 'drip', part: 'headers', bytesPerSecond: 1024 }],
    ['oversize', 1, { kind: 'oversize', bytes: 65 * 1024 * 1024, chunked: false }],
    ['oversize-chunked=2MiB', 1, { kind: 'oversize', bytes: 2 * 1024 * 1024, chunked: true }],
    ['bomb=1GiB', 1, { kind: 'bomb', bytes: 1024 ** 3 }],
    ['gzip:0.5', 0.5, { kind: 'compression', broken: false }],
    ['broken', 1, { kind: 'compression', broken: true }],
    ['content-type', 1, { kind: 'content-type', value: 'text/html' }],
    ['items=duplicate', 1, { kind: 'items', variant: 'duplicate' }],
    ['echo=redirect', 1, { kind: 'echo', where: 'redirect' }],
  ])('parses %s', (text, probability, fault) => {
    expect(parseFaults(text)).toEqual([{ fault, probability }]);
  });

  it('parses a list with white space around its entries', () => {
    expect(parseFaults(' hang:0.1 , delay=10ms ')).toEqual([
      { fault: { kind: 'hang' }, probability: 0.1 },
      { fault: { kind: 'delay', ms: 10 }, probability: 1 },
    ]);
  });

  it('returns no faults for an empty text', () => {
    expect(parseFaults('')).toEqual([]);
  });

  it('expands "all" to a mixture that lets most requests succeed', () => {
    const rules = parseFaults('all,delay=5s:0.1');
    const harmless = new Set(['delay', 'compression', 'content-type', 'drip']);
    const harmful = rules.filter(({ fault }) => !harmless.has(fault.kind));

    expect(rules.at(-1)).toEqual({ fault: { kind: 'delay', ms: 5000 }, probability: 0.1 });
    expect(new Set(rules.map(({ fault }) => fault.kind)).size).toBe(14);
    expect(harmful.reduce((sum, rule) => sum + (rule.probability ?? 1), 0)).toBeLessThan(0.3);
  });

  it.each([
    ['statsu=500', /^Fault "statsu=500": expected kind.*status, delay, hang.*, all\.$/],
    ['hang,,gzip', /^Fault "": expected kind/],
    ['gzip:2', /^Fault "gzip:2": expected kind.*probability from 0 to 1/],
    ['__proto__', /^Fault "__proto__": expected kind/],
    ['status', /^Fault "status": expected status=CODE\[\/RETRY_AFTER\]\[:probability\]\.$/],
    ['status=99', /expected status=CODE/],
    ['delay=2', /expected delay=DURATION/],
    ['delay=900h', /expected delay=DURATION/],
    ['reset=later', /expected reset\[=before\|headers\|body\]/],
    ['hang=1', /expected hang\[:probability\]/],
    ['gzip=9', /expected gzip\[:probability\]/],
    ['drip=0', /expected drip=BYTES_PER_SECOND/],
    ['items=toString', /expected items=no-id\|/],
    ['garbage=constructor', /expected garbage\[=text\|/],
    ['redirect=http://x/\r\nSet-Cookie', /expected redirect\[=URL\]/],
  ])('rejects %j with an error that shows the correct syntax', (text, message) => {
    expect(() => parseFaults(text)).toThrow(message);
  });
});

it('faultSyntax returns kinds with a required, an optional and no argument, and "all"', () => {
  expect(faultSyntax()).toContain('status=CODE[/RETRY_AFTER]');
  expect(faultSyntax()).toContain('hang');
  expect(faultSyntax()).toContain('truncate[=BYTES]');
  expect(faultSyntax()).toContain('all');
});

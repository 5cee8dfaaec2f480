import { describe, expect, it } from 'vitest';
import { parseHost } from '../../../../src/web/request/host.ts';
import { isCrossSite, isForThisServer } from '../../../../src/web/protection/server-names.ts';
import type { Route } from '../../../../src/web/request/target.ts';

const CHROMIUM = { 'accept-encoding': 'gzip, deflate', 'accept-language': 'en' };
const PROMETHEUS_2_42 = {
  'user-agent': 'Prometheus/2.42.0',
  accept:
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
  'accept-encoding': 'gzip',
  'x-prometheus-scrape-timeout-seconds': '10',
};

function answers(host: string, route: Route = 'other', headers = {}, allowed: string[] = []) {
  return isForThisServer({ host: parseHost(host), route }, headers, { listen: '0.0.0.0', allowed });
}

describe('Host check without a login', () => {
  it.each(
    [
      ['127.0.0.1:10570', '10.20.30.40', '[::1]:10570', '[fd00::1]', 'localhost:10570'],
      ['evalwatch:10570', 'evalwatch_1', 'a.localhost', 'nas.local', 'evalwatch.corp.internal'],
      ['pi.home.arpa', 'evalwatch.monitoring.svc.cluster.local:10570', 'evalwatch.monitoring.svc'],
    ].flat(),
  )('accepts %s', (host) => {
    expect(answers(host, 'other', CHROMIUM)).toBe(true);
  });

  it.each(
    [
      ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', 'local.example'],
      ['xlocal.xinternal', '1.2.3.4.5', 'evalwatch.dev'],
    ].flat(),
  )('rejects %s unless it is allowed', (host) => {
    expect(answers(host)).toBe(false);
    expect(answers(host, 'events')).toBe(false);
    expect(answers(host, 'other', CHROMIUM, [host])).toBe(true);
    expect(answers(`${host.toUpperCase()}.:1`, 'other', CHROMIUM, [host])).toBe(true);
  });

  it.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost'])(
    'with listen address %s rejects names that other hosts on the network can claim',
    (listen) => {
      const isOwn = (name: string) =>
        isForThisServer({ host: parseHost(name), route: 'other' }, CHROMIUM, {
          listen,
          allowed: [],
        });
      expect(['localhost', 'a.localhost', 'evalwatch', '127.0.0.1'].every(isOwn)).toBe(true);
      expect(['evil.local', 'evil.internal', 'evil.home.arpa'].some(isOwn)).toBe(false);
    },
  );

  it('accepts any name for probes', () => {
    expect(answers('evil.example', 'probe', CHROMIUM)).toBe(true);
  });

  it('accepts a request without a Host header', () => {
    const names = { listen: '0.0.0.0', allowed: [] };
    expect(isForThisServer({ host: undefined, route: 'other' }, {}, names)).toBe(true);
  });

  it.each([PROMETHEUS_2_42, {}, { 'accept-encoding': 'identity' }, { 'accept-encoding': '' }])(
    'accepts any name for metrics if the client is not a browser: %j',
    (headers) => {
      expect(answers('evalwatch.example.com', 'metrics', headers)).toBe(true);
    },
  );

  it.each([
    CHROMIUM,
    { 'accept-encoding': 'gzip, deflate, br, zstd' },
    { 'accept-encoding': 'deflate' },
    { 'accept-encoding': 'identity', range: 'bytes=0-' },
    { 'accept-encoding': 'gzip', 'accept-language': '' },
    { 'sec-fetch-site': 'same-origin' },
    { ...PROMETHEUS_2_42, ...CHROMIUM },
  ])('rejects a foreign name for metrics if the client can be a browser: %j', (headers) => {
    expect(answers('evil.example', 'metrics', headers)).toBe(false);
  });
});

describe('cross-site check', () => {
  const host = parseHost('evalwatch.example.com:10570');

  it.each([
    {},
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'same-origin' },
    { origin: 'http://evalwatch.example.com:10570' },
    { origin: 'http://Evalwatch.Example.com:10570', 'sec-fetch-site': 'same-origin' },
    { origin: 'https://outside.example' },
  ])('accepts %j', (headers) => {
    expect(isCrossSite(headers, host, ['outside.example'])).toBe(false);
  });

  it.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'same-origin, cross-site' },
    { 'sec-fetch-site': '' },
    { origin: 'null' },
    { origin: '' },
    { origin: 'http://evil.example' },
    { origin: 'http://evalwatch.example.com' },
    { origin: 'http://evalwatch.example.com:10571' },
    { origin: 'http://evalwatch.example.com:10570/' },
    { origin: 'http://evalwatch.example.com:10570 http://evil.example' },
    { origin: 'file://evalwatch.example.com:10570' },
  ])('rejects %j', (headers) => {
    expect(isCrossSite(headers, host, [])).toBe(true);
  });

  it('treats an omitted port as the default port of the scheme', () => {
    const origins = ['https://a.example', 'https://a.example:443', 'http://a.example:80'];
    for (const origin of origins) {
      expect(isCrossSite({ origin }, parseHost('a.example'), [])).toBe(false);
    }
    expect(isCrossSite({ origin: 'https://a.example' }, parseHost('a.example:443'), [])).toBe(
      false,
    );
    expect(isCrossSite({ origin: 'https://a.example' }, parseHost('a.example:80'), [])).toBe(true);
  });
});

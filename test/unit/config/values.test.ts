import { describe, expect, it } from 'vitest';
import {
  isPlainHttp,
  parseBaseUrl,
  parseListen,
  parseProxyUrl,
} from '../../../src/config/values/address.ts';
import { parseDuration, suggestDuration } from '../../../src/domain/duration.ts';
import { parseSize, suggestSize } from '../../../src/config/values/size.ts';
import { closest } from '../../../src/config/suggest.ts';
import { parseTimezone } from '../../../src/config/values/timezone.ts';

describe('duration parsing', () => {
  it.each([
    ['500ms', 500],
    ['10s', 10_000],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['90d', 7_776_000_000],
    ['0s', 0],
    ['1h30m', 5_400_000],
    ['1d2h3m4s5ms', 93_784_005],
    ['1m30ms', 60_030],
    ['90m', 5_400_000],
  ])('parses %s as %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', '10', '0', 's', '1.5s', '-1s', '+1s', '1s1m', '1s1s', '1 s', '1S', '10w', '1h 30m'])(
    'rejects %j',
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );

  it.each([
    ['10', '90d', '10d'],
    ['10', '10s', '10s'],
    ['10 s', '10s', '10s'],
    ['1 hour 30 minutes', '10s', '1h30m'],
    ['500 Milliseconds', '10s', '500ms'],
    ['2 Days', '10s', '2d'],
    ['5M', '10s', '5m'],
  ])('suggests a duration for %j where the example is %s', (input, example, suggestion) => {
    expect(suggestDuration(input, example)).toBe(suggestion);
  });

  it.each(['soon', '', '1.5h', '1m1h'])('suggests nothing for %j', (input) => {
    expect(suggestDuration(input, '10s')).toBeUndefined();
  });
});

describe('size parsing', () => {
  it.each([
    ['1B', 1],
    ['512KiB', 524_288],
    ['64MiB', 67_108_864],
    ['1GiB', 1_073_741_824],
  ])('parses %s as %d bytes', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  it.each(['', '64', '64MB', '64mib', '1.5MiB', '64 MiB', 'MiB', '-1B'])('rejects %j', (text) => {
    expect(parseSize(text)).toBeUndefined();
  });

  it.each([
    ['1024', '1024B'],
    ['64MB', '64MiB'],
    ['64M', '64MiB'],
    ['64 mib', '64MiB'],
    ['1g', '1GiB'],
    ['100 bytes', '100B'],
  ])('suggests a size for %j', (input, suggestion) => {
    expect(suggestSize(input)).toBe(suggestion);
  });

  it.each(['a lot', '1.5MB', '1TiB', ''])('suggests nothing for %j', (input) => {
    expect(suggestSize(input)).toBeUndefined();
  });
});

describe('base URL parsing', () => {
  it.each([
    ['https://evaluation.example.com', 'https://evaluation.example.com'],
    ['https://evaluation.example.com/', 'https://evaluation.example.com'],
    ['https://evaluation.example.com/api//', 'https://evaluation.example.com/api'],
    ['HTTPS://Evaluation.Example.com:443/API', 'https://evaluation.example.com/API'],
    ['http://[::1]:8080', 'http://[::1]:8080'],
    ['https://evaluation.example.com/team@home', 'https://evaluation.example.com/team@home'],
  ])('normalizes %s to %s', (text, url) => {
    expect(parseBaseUrl(text)).toEqual({ value: url });
  });

  it.each([
    '',
    'https://',
    'https:evaluation.example.com',
    'https:\\\\evaluation.example.com',
    ' https://evaluation.example.com',
    'https://evaluation.example.com/\n',
    'https://evaluation.example.com:99999',
    'https://[::1',
    ' https://:5ecret@evaluation.example.com',
    'https://:5ecret@evaluation.example.com:99999',
    'https://:5ecret@[::1',
    'https://:5ecret@evaluation.example.com',
    'https://evaluation.example.com?',
    'https://evaluation.example.com?key=5ecret',
    'https://evaluation.example.com#',
    'https://evaluation.example.com#5ecret',
  ])('rejects %j without repeating a password', (text) => {
    expect(parseBaseUrl(text).fault).toMatch(/^must /);
    expect(parseBaseUrl(text).fault).not.toContain('5ecret');
  });

  it.each([
    ['http://localhost', 'loopback'],
    ['http://LOCALHOST:8080/api', 'loopback'],
    ['http://127.0.0.1', 'loopback'],
    ['http://127.255.255.254', 'loopback'],
    ['http://127.1', 'loopback'],
    ['http://[::1]:80', 'loopback'],
    ['http://[0:0::1]', 'loopback'],
    ['http://128.0.0.1', 'remote'],
    ['http://127.0.0.1.example.com', 'remote'],
    ['http://localhost.example.com', 'remote'],
    ['http://[::2]', 'remote'],
    ['https://evaluation.example.com', false],
    ['nonsense', false],
  ])('classifies the destination of %s over plain HTTP: %s', (text, where) => {
    expect(isPlainHttp(text)).toBe(where);
  });
});

describe('proxy URL parsing', () => {
  it.each([
    ['http://proxy.example.com:3128', 'http://proxy.example.com:3128/'],
    ['https://proxy.example.com/', 'https://proxy.example.com/'],
    ['http://user:p%40ss@proxy.example.com:3128', 'http://user:p%40ss@proxy.example.com:3128/'],
  ])('normalizes %s to %s', (text, url) => {
    expect(parseProxyUrl(text)).toEqual({ value: url });
  });

  it.each([
    'proxy.example.com:3128',
    'user:5ecret@proxy.example.com:3128',
    'socks5://user:5ecret@proxy.example.com',
    'http://user:5ecret@proxy.example.com/path',
    'http://user:5ecret@proxy.example.com?query',
    'http://user:5ecret%zz@proxy.example.com',
  ])('rejects %j without repeating a password', (text) => {
    expect(parseProxyUrl(text).fault).toMatch(/^must /);
    expect(parseProxyUrl(text).fault).not.toContain('5ecret');
  });
});

describe('listen address parsing', () => {
  it.each([
    ['127.0.0.1:10570', '127.0.0.1', 10_570],
    ['0.0.0.0:0', '0.0.0.0', 0],
    ['[::1]:10570', '::1', 10_570],
    ['[::]:65535', '::', 65_535],
    ['localhost:80', 'localhost', 80],
    ['monitor_1.example.com:80', 'monitor_1.example.com', 80],
  ])('parses %s as host %s and port %d', (text, host, port) => {
    expect(parseListen(text)).toEqual({ value: { host, port } });
  });

  it.each([
    ['10570', '127.0.0.1:10570'],
    [':10570', '0.0.0.0:10570'],
    ['*:10570', '0.0.0.0:10570'],
    ['localhost', 'localhost:10570'],
    ['::1:80', '[::1]:80'],
  ])('rejects %s and suggests %s', (text, suggestion) => {
    expect(parseListen(text).fault).toContain(`did you mean "${suggestion}"?`);
  });

  it.each(['', ':', 'localhost:', 'localhost:-1', 'localhost:1e3', '[localhost]:80', '1.2.3:80'])(
    'rejects %j',
    (text) => {
      expect(parseListen(text).fault).toMatch(
        /^must be host:port, such as [^,]+(, not ("[^"]+"|empty))?$/,
      );
    },
  );

  it('rejects a port above 65535', () => {
    expect(parseListen('localhost:65536').fault).toBe(
      'must have a port from 0 to 65535, not 65536',
    );
  });
});

describe('time zone parsing', () => {
  it.each([
    ['UTC', 'UTC'],
    ['Europe/Berlin', 'Europe/Berlin'],
    ['europe/berlin', 'Europe/Berlin'],
    ['America/Argentina/Buenos_Aires', 'America/Argentina/Buenos_Aires'],
  ])('parses %s as %s', (text, zone) => {
    expect(parseTimezone(text)).toEqual({ value: zone });
  });

  it.each(['', 'Mars/Olympus', '+01:00', '-05:00', 'undefined', 'Europe/Berlin ', 'CEST'])(
    'rejects %j',
    (text) => {
      expect(parseTimezone(text).fault).toMatch(/^must be a time zone/);
    },
  );

  it.each([
    ['Europe/Berln', 'Europe/Berlin'],
    ['Europe Berlin', 'Europe/Berlin'],
    ['America/New-York', 'America/New_York'],
  ])('suggests for %s the time zone %s', (text, zone) => {
    expect(parseTimezone(text).hint?.()).toBe(zone);
  });
});

describe('the closest candidate', () => {
  const keys = ['schedule', 'timezone', 'api_key_file', 'api_key_env', 'id'];

  it.each([
    ['scheduel', 'schedule'],
    ['shedule', 'schedule'],
    ['schedules', 'schedule'],
    ['time_zone', 'timezone'],
    ['timeZone', 'timezone'],
    ['apiKeyEnv', 'api_key_env'],
    ['api_key', 'api_key_file'],
    ['ID', 'id'],
  ])('to %s is %s', (text, key) => {
    expect(closest(text, keys)).toBe(key);
  });

  it.each(['colour', 'x', '', 'password', 'schedule'.repeat(1000)])('to %s is none', (text) => {
    expect(closest(text, keys)).toBeUndefined();
  });
});

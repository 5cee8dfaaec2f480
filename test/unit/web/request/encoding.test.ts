import { expect, it } from 'vitest';
import { chooseEncoding } from '../../../../src/web/request/encoding.ts';

it.each([
  ['gzip', 'gzip'],
  ['deflate, GZIP', 'gzip'],
  ['x-gzip', 'gzip'],
  ['*', 'gzip'],
  ['gzip;q=0.5', 'gzip'],
  ['br;q=1.0, gzip ; Q=0.8, *;q=0.1', 'gzip'],
  ['gzip;q=0.5, identity;q=0.5', 'gzip'],
  ['identity;q=0, gzip;q=0.001', 'gzip'],
  [undefined, 'identity'],
  ['', 'identity'],
  ['br', 'identity'],
  ['gzipped', 'identity'],
  ['identity;q=1, gzip;q=0', 'identity'],
  ['gzip;q=0', 'identity'],
  ['gzip; q=0.000', 'identity'],
  ['*, gzip;q=0', 'identity'],
  ['*;q=0', 'identity'],
  ['gzip;q=0.5, identity', 'identity'],
  ['gzip;q=', 'identity'],
  ['gzip;q=x', 'identity'],
  ['gzip;q=-1', 'identity'],
])('Accept-Encoding: %s selects %s', (header, encoding) => {
  expect(chooseEncoding(header)).toBe(encoding);
});

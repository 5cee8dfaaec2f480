import { gzipSync } from 'node:zlib';
import { promptItem } from '../../test/support/service.ts';
import { FORGED, type Exchange, GOOD, type Hostility, listing, TURNED } from './exchange.ts';

const deep = (depth: number) =>
  `${TURNED.slice(0, -2)},"x":${'['.repeat(depth - 2)}${']'.repeat(depth - 2)}}]`;
const latin1 = Buffer.from(TURNED.replace('name of', 'n\xe4me of'), 'latin1');
const utf16 = Buffer.from(`\ufeff${TURNED}`, 'utf16le');
/** Adds fields to the last item of the good listing. */
const goodWith = (more: string) => `${GOOD.slice(0, -2)},${more}}]`;

const unusable: Readonly<Record<string, string | Buffer | ((exchange: Exchange) => string)>> = {
  'html instead of json': ({ key }) => `<!doctype html><p>Sign in, ${key}</p>`,
  'an object': ({ key }) => `{"items":${TURNED},"key":"${key}"}`,
  'a text': ({ key }) => JSON.stringify(`${key}${FORGED}`),
  'a number': '1e999',
  null: 'null',
  'nothing at all': '',
  'white space': ' \r\n\t ',
  'json cut short': TURNED.slice(0, -1),
  'json and more': `${TURNED}${TURNED}`,
  'json and a zero byte': `${TURNED}\0`,
  'json with a comment': `// ${FORGED}\n${TURNED}`,
  'json with a comma too many': `${TURNED.slice(0, -1)},]`,
  'json lines': TURNED.slice(1, -1).replaceAll('},{', '}\n{'),
  'a line break in a text': TURNED.replace('name of', 'name\nof'),
  'not utf-8': latin1,
  'a surrogate in utf-8': Buffer.from(TURNED.replace('name of', '\xed\xa0\x80'), 'latin1'),
  'an overlong byte': Buffer.from(TURNED.replace('name of', '\xc0\xaf'), 'latin1'),
  'utf-16': utf16,
  'nested 65 deep': deep(65),
  'nested 50,000 deep': deep(50_000),
  'no usable item': ({ key }) => JSON.stringify([{ id: key }, { name: key }, null, 7, [], '']),
};

const wrongIds: readonly unknown[] = [
  17,
  12_345_678_901_234_567n,
  null,
  true,
  ['pending'],
  { id: 'pending' },
  '',
  '\ud800',
  'x'.repeat(513),
];

const usable: Readonly<Record<string, string | Buffer | ((exchange: Exchange) => string)>> = {
  'a byte order mark': `\ufeff${GOOD}`,
  'white space everywhere': JSON.stringify(JSON.parse(GOOD), undefined, '\n\t'),
  'nested 64 deep': goodWith(`"x":${'['.repeat(62)}${']'.repeat(62)}`),
  'brackets in a text': goodWith(`"x":"${'[{'.repeat(100)}\\"]"`),
  'keys of the prototype': goodWith(
    '"__proto__":{"id":"planted","status":"FAILED"},"constructor":{"prototype":{"id":1}},"toString":0',
  ),
  'a number of a million digits': goodWith(`"x":${'9'.repeat(1_000_000)}`),
  // The first and the third prompt have no usable id. Such an item may be either of them, so neither is missing.
  'items with wrong ids': ({ key }) => {
    const items = wrongIds
      .concat(key, encodeURIComponent(key))
      .map((id) => ({ ...promptItem('', 'FAILED'), id }));
    const text = JSON.stringify(items, (_, value: unknown) =>
      typeof value === 'bigint' ? Number(value) : value,
    );
    return (
      GOOD.replace('"pending"', '4.0').replace('"completed"', '""').slice(0, -1) +
      `,${text.slice(1)}`
    );
  },
};

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html',
  'no type': '',
  'a charset that it is not in': 'application/json; charset=utf-16',
  'many parts': 'multipart/mixed; boundary=x',
  bytes: 'application/octet-stream',
};

/** Hostile bodies of a 200. */
export const BODIES: Readonly<Record<string, Hostility>> = {
  ...mapped(unusable, (body) => ({ ends: ['invalid_response'], answer: listing(body) })),
  ...mapped(usable, (body) => ({ ends: ['ok'], answer: listing(body) })),
  ...Object.fromEntries(
    Object.entries(TYPES).map(([name, type]): [string, Hostility] => [
      `a listing that says it is ${name}`,
      { ends: ['ok'], answer: listing(GOOD, { 'content-type': type }) },
    ]),
  ),
  ...mapped(
    {
      gzip: Buffer.from('this was never gzip'),
      br: TURNED,
      rot13: TURNED,
      'gzip, gzip': gzipSync(gzipSync(TURNED)),
    },
    (body, coding) => ({
      ends: ['invalid_response'],
      answer: listing(body, { 'content-encoding': coding }),
    }),
    'broken ',
  ),
  'cut gzip': {
    ends: ['invalid_response'],
    answer: listing(gzipSync(TURNED).subarray(0, -3), { 'content-encoding': 'gzip' }),
  },
};

function mapped<Body>(
  bodies: Readonly<Record<string, Body>>,
  toHostility: (body: Body, name: string) => Hostility,
  prefix = '',
): Readonly<Record<string, Hostility>> {
  return Object.fromEntries(
    Object.entries(bodies).map(([name, body]) => [prefix + name, toHostility(body, name)]),
  );
}

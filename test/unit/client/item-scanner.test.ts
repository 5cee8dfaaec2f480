import { describe, expect, it } from 'vitest';
import { createItemScanner } from '../../../src/client/listing/scanner.ts';
import { ApiError } from '../../../src/monitor/errors.ts';

const startScan = createItemScanner(1_000_000);

interface Found {
  first: number;
  readonly ends: number[];
  readonly hashes: number[];
  digest: string;
}

function startCollecting(start = startScan) {
  const found: Found = { first: 0, ends: [], hashes: [], digest: '' };
  const running = start((_, { count, ends, hashes, first }) => {
    found.ends.push(...ends.subarray(0, count));
    found.hashes.push(...hashes.subarray(0, 2 * count));
    found.first = first;
  });
  return {
    push: running.push,
    finish: () => {
      found.digest = running.finish();
      return found;
    },
  };
}

/** Scans a body in pieces of `bytes` bytes. */
function scan(body: string | Buffer, bytes = Number.MAX_SAFE_INTEGER, start = startScan): Found {
  const whole = Buffer.from(body);
  const running = startCollecting(start);
  for (let from = 0; from < whole.length; from += bytes) {
    running.push(whole.subarray(from, from + bytes));
  }
  return running.finish();
}

function itemsOf(body: string, { first, ends } = scan(body)): readonly string[] {
  const bytes = Buffer.from(body);
  return ends.map((end, index) =>
    bytes.toString('utf8', index === 0 ? first : (ends[index - 1] ?? 0) + 1, end),
  );
}

function hashesOf(body: string): readonly string[] {
  const { ends, hashes } = scan(body);
  return ends.map((_, index) => hashes.slice(2 * index, 2 * index + 2).join());
}

describe('the item scanner', () => {
  it.each([
    ['[]', ['']],
    [' \n[ ] ', [' ']],
    ['\uFEFF[1]', ['1']],
    ['[1,2]', ['1', '2']],
    ['[ {"a":[1,{"b":2}]} , {} ]', [' {"a":[1,{"b":2}]} ', ' {} ']],
    ['["],[", "\\",\\\\", "\\\\"]', ['"],["', ' "\\",\\\\"', ' "\\\\"']],
    [`["${'\\\\'.repeat(70)}",2]`, [`"${'\\\\'.repeat(70)}"`, '2']],
    [`["${'\\\\'.repeat(31)}\\",",2]`, [`"${'\\\\'.repeat(31)}\\","`, '2']],
    ['["é,😀",null]', ['"é,😀"', 'null']],
    ['[1,]', ['1', '']],
  ])('finds the items of %s', (body, items) => {
    expect(itemsOf(body)).toEqual(items);
  });

  it('finds the same items however the body is split into pieces', () => {
    const body = `\uFEFF ${JSON.stringify(
      Array.from({ length: 300 }, (_, index) => ({
        id: `prompt ${index}`,
        text: `${'\\'.repeat(index % 9)}"],[{${'é'.repeat(index % 70)}`,
        deep: [[{ index }]],
      })),
    )} \n`;
    const whole = scan(body);
    expect(itemsOf(body, whole)).toHaveLength(300);
    for (const bytes of [1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 127, 1000, 65_536]) {
      expect(scan(body, bytes)).toEqual(whole);
    }
  });

  it('finds items that are larger than a piece or nested 64 deep, including the outer array', () => {
    const large = JSON.stringify('x'.repeat(300_000));
    const deep = `${'['.repeat(63)}${']'.repeat(63)}`;
    expect(itemsOf(`[${large},${deep}]`)).toEqual([large, deep]);
  });

  it('scans two bodies side by side without mixing their items', () => {
    const [one, other] = [startCollecting(), startCollecting()];
    one.push(Buffer.from('[{"a":"'));
    other.push(Buffer.from('[1,2'));
    one.push(Buffer.from('x"},3]'));
    other.push(Buffer.from(']'));
    expect(other.finish()).toEqual(scan('[1,2]'));
    expect(one.finish()).toEqual(scan('[{"a":"x"},3]'));
  });
});

describe('the hash of an item', () => {
  it('depends only on the bytes of the item, not on its position', () => {
    const [a, b, c] = hashesOf('[{"id":"a"},{"id":"b"},{"id":"a"}]');
    expect(a).toBe(c);
    expect(a).not.toBe(b);
    expect(hashesOf('[0,{"id":"a"}]')[1]).toBe(a);
  });

  it('differs for each single-bit change and for each length', () => {
    const text = 'x'.repeat(100);
    const hashes = new Set(hashesOf(`["${text}"]`));
    for (let at = 0; at < text.length; at += 1) {
      for (const other of ['y', 'z', 'p', 'h', 'X', '8']) {
        hashes.add(hashesOf(`["${text.slice(0, at)}${other}${text.slice(at + 1)}"]`)[0] ?? '');
      }
    }
    for (let length = 0; length < 100; length += 1) {
      hashes.add(hashesOf(`["${'x'.repeat(length)}"]`)[0] ?? '');
    }
    expect(hashes.size).toBe(1 + 600 + 100);
  });

  it('differs between scanners, so that a service cannot construct collisions', () => {
    expect(scan('[1]', 1, createItemScanner(1_000_000)).hashes).not.toEqual(scan('[1]').hashes);
  });
});

it.each([' [1]', '[1] ', '[1 ]', '[1,1]', '[[1]]', '\uFEFF[1]', '[]'])(
  'the digest of %j differs from that of [1]',
  (body) => {
    expect(scan(body).digest).not.toBe(scan('[1]').digest);
  },
);

describe('an invalid body', () => {
  it.each([
    ['', 'not a JSON array'],
    ['\uFEFF', 'not a JSON array'],
    ['{"a":[]}', 'not a JSON array'],
    ['x[1]', 'not a JSON array'],
    [' \uFEFF[1]', 'not a JSON array'],
    ['\uFEFF\uFEFF[1]', 'not a JSON array'],
    ['[1', 'not JSON'],
    ['["1]', 'not JSON'],
    ['[1]]', 'not JSON'],
    ['[1}', 'not JSON'],
    ['[1],', 'not JSON'],
    ['['.repeat(65), 'deeper than 64'],
    [`[${'{"a":'.repeat(64)}`, 'deeper than 64'],
  ])('of %j is rejected, however it is split into pieces', (body, message) => {
    for (const bytes of [1, 2, 5, 1000]) {
      expect(() => scan(body, bytes)).toThrow(ApiError);
      expect(() => scan(body, bytes)).toThrow(message);
    }
  });
});

describe('items above the limit', () => {
  it.each([1, 100, 5000])(
    'are rejected before the body ends when it arrives in pieces of %i bytes',
    (bytes) => {
      const running = startCollecting(createItemScanner(1000));
      const push = () => {
        for (let sent = 0; sent < 10_000; sent += bytes) {
          running.push(Buffer.from('[0,'.concat('0,'.repeat(5000)).slice(sent, sent + bytes)));
        }
      };
      expect(push).toThrow('the listing has more than 1000 items (service.max_items)');
    },
  );

  it('are rejected, while exactly as many as the limit are accepted', () => {
    const items = (count: number) => `[${Array.from({ length: count }, () => 0).join()}]`;
    expect(itemsOf(items(1000), scan(items(1000), 7, createItemScanner(1000)))).toHaveLength(1000);
    expect(() => scan(items(1001), 7, createItemScanner(1000))).toThrow('more than 1000');
  });
});

import { describe, expect, it } from 'vitest';
import { BodyScan, ItemScanner } from '../../../src/client/listing/scanner.ts';
import { ApiError } from '../../../src/monitor/errors.ts';

const scanner = new ItemScanner(1_000_000);

function start(by = scanner) {
  const hashes: string[] = [];
  const found = { items: '', count: 0, hashes, digest: '' };
  const bodyScan = new BodyScan(
    by,
    (...hash) => {
      hashes.push(hash.join());
      return false;
    },
    ({ text, indexes }) => {
      found.items += text.toString('utf8', 1);
      found.count += indexes.length;
    },
  );
  return {
    push: (piece: Buffer) => bodyScan.push(piece),
    finish: () => {
      found.digest = bodyScan.finish();
      return found;
    },
  };
}

/** Scans a body in pieces of `bytes` bytes. */
function scan(body: string, bytes = Number.MAX_SAFE_INTEGER, by = scanner) {
  const whole = Buffer.from(body);
  const running = start(by);
  for (let from = 0; from < whole.length; from += bytes) {
    running.push(whole.subarray(from, from + bytes));
  }
  return running.finish();
}

function hashesOf(body: string): readonly string[] {
  return scan(body).hashes;
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
    expect(scan(body)).toMatchObject({ items: `${items.join()},`, count: items.length });
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
    expect(whole.count).toBe(300);
    for (const bytes of [1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 127, 1000, 65_536]) {
      expect(scan(body, bytes)).toEqual(whole);
    }
  });

  it('finds items that are larger than a piece or nested 64 deep, including the outer array', () => {
    const large = JSON.stringify('x'.repeat(300_000));
    const deep = `${'['.repeat(63)}${']'.repeat(63)}`;
    expect(scan(`[${large},${deep}]`)).toMatchObject({ items: `${large},${deep},`, count: 2 });
  });

  it('scans two bodies side by side without mixing their items', () => {
    const [one, other] = [start(), start()];
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
    expect(scan('[1]', 1, new ItemScanner(1_000_000)).hashes).not.toEqual(hashesOf('[1]'));
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
      const running = start(new ItemScanner(1000));
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
    expect(scan(items(1000), 7, new ItemScanner(1000)).count).toBe(1000);
    expect(() => scan(items(1001), 7, new ItemScanner(1000))).toThrow('more than 1000');
  });
});

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { readTarget } from '../../../../src/web/request/target.ts';

const read = (url: string) => readTarget({ url, httpVersion: '1.1', rawHeaders: ['Host', 'x'] });

it('the path of a request does not change when it is parsed as a URL or again', () => {
  const piece = fc.oneof(
    fc.constantFrom(...'/ % %2 %2e %2F %5c %25 . ; ? " | ^ [ a'.split(' ')),
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

import { describe, expect, it } from 'vitest';
import { createWaitingLines } from '../../../../src/web/limits/waiting-lines.ts';

function setUp(maxWaiting = 100, maxWaitingPerKey = 100) {
  const lines = createWaitingLines<string>({ maxWaiting, maxWaitingPerKey });
  const add = (text: string) => lines.add(text.charAt(0), text);
  const takeAll = () => {
    const taken: (string | undefined)[] = [];
    while (!lines.isEmpty()) taken.push(lines.take());
    return taken.join(' ');
  };
  return { lines, add, takeAll };
}

describe('waiting lines', () => {
  it('drop the newest item of the longest line for a key with fewer items when all are full', () => {
    const { add, takeAll } = setUp(4);
    expect(['a1', 'a2', 'a3', 'b1'].map(add)).toEqual(Array.from({ length: 4 }));
    expect(add('a4')).toBe('a4');
    expect(add('c1')).toBe('a3');
    expect(add('d1')).toBe('a2');
    expect(add('e1')).toBe('e1');
    expect(takeAll()).toBe('a1 b1 c1 d1');
  });

  it('can remove an item, and ignore the removal of an absent one', () => {
    const { lines, add, takeAll } = setUp();
    for (const item of ['a1', 'a2', 'b1']) add(item);
    lines.remove('a', 'a1');
    lines.remove('b', 'b1');
    lines.remove('b', 'b1');
    lines.remove('c', 'c1');
    expect(takeAll()).toBe('a2');
    expect(lines.take()).toBeUndefined();
  });
});

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
  it('are served in turn, each from its beginning', () => {
    const { add, takeAll } = setUp();
    for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']) add(item);
    expect(takeAll()).toBe('a1 b1 c1 a2 c2 a3');
  });

  it('serve one that comes back behind those that wait', () => {
    const { lines, add, takeAll } = setUp();
    for (const item of ['a1', 'b1', 'b2']) add(item);
    expect(lines.take()).toBe('a1');
    add('a2');
    expect(takeAll()).toBe('b1 a2 b2');
  });

  it('have a limit each', () => {
    const { add, takeAll } = setUp(100, 2);
    expect(['a1', 'a2', 'a3', 'b1'].map(add)).toEqual([undefined, undefined, 'a3', undefined]);
    expect(takeAll()).toBe('a1 b1 a2');
  });

  it('that are full drop the newest of the longest for a key that has fewer', () => {
    const { add, takeAll } = setUp(4);
    expect(['a1', 'a2', 'a3', 'b1'].map(add)).toEqual(Array.from({ length: 4 }));
    expect(add('a4')).toBe('a4');
    expect(add('c1')).toBe('a3');
    expect(add('d1')).toBe('a2');
    expect(add('e1')).toBe('e1');
    expect(takeAll()).toBe('a1 b1 c1 d1');
  });

  it('are left by those who do not wait any longer', () => {
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

import { expect, it } from 'vitest';
import { createLargePolls } from '../../../src/monitor/large-polls.ts';

function setUp() {
  const beginPoll = createLargePolls();
  const held: string[] = [];
  const begin = (name: string) => {
    const poll = beginPoll();
    return {
      wait: async () => {
        await poll.waitForRoom();
        held.push(name);
      },
      end: () => poll[Symbol.dispose](),
    };
  };
  return { begin, held };
}

const settle = () => new Promise((resolve) => void setImmediate(resolve));

it('one poll at a time has room, in the order in which they ask', async () => {
  const { begin, held } = setUp();
  const [a, b, c] = [begin('a'), begin('b'), begin('c')];
  void c.wait();
  void a.wait();
  await settle();
  expect(held).toEqual(['c']);
  c.end();
  await settle();
  expect(held).toEqual(['c', 'a']);
  void b.wait();
  a.end();
  await settle();
  expect(held).toEqual(['c', 'a', 'b']);
});

it('two listings of a poll share its room', async () => {
  const { begin, held } = setUp();
  const [a, b] = [begin('a'), begin('b')];
  void a.wait();
  void b.wait();
  void a.wait();
  await settle();
  expect(held).toEqual(['a', 'a']);
});

it('a poll that ends before its turn passes it on', async () => {
  const { begin, held } = setUp();
  const [a, b, c] = [begin('a'), begin('b'), begin('c')];
  void a.wait();
  void b.wait();
  void c.wait();
  b.end();
  a.end();
  await settle();
  expect(held).toContain('c');
});

it('a poll without a large listing holds up nobody', async () => {
  const { begin, held } = setUp();
  begin('small');
  const large = begin('large');
  void large.wait();
  await settle();
  expect(held).toEqual(['large']);
});

import type { Dispatcher } from 'undici';
import { expect, it, vi } from 'vitest';
import { createBodyReader, type BodyOptions } from '../../../src/evaluation-api/sending/body.ts';
import { exchange } from '../../../src/evaluation-api/sending/exchange.ts';

vi.mock(import('../../../src/evaluation-api/sending/body.ts'));

const MAX_CHUNKS_PER_TURN = 16_384;
const nextTurn = () => new Promise((resolve) => void setImmediate(resolve));

/** An exchange whose connection and decoders do what the test says. */
function setUp() {
  const ending = new AbortController();
  const controller = { pause: vi.fn<() => void>(), resume: vi.fn<() => void>(), abort: () => {} };
  const connection = controller as unknown as Dispatcher.DispatchController;
  const decoders = { hasRoom: true, drain: () => {} };
  vi.mocked(createBodyReader).mockImplementation(({ onDrain }: BodyOptions) => {
    decoders.drain = onDrain;
    return { write: () => decoders.hasRoom, end: () => {}, destroy: () => {}, bytes: () => 0 };
  });
  let handler: Dispatcher.DispatchHandler = {};
  const dispatch: Dispatcher['dispatch'] = (_, given) => {
    handler = given;
    return true;
  };
  const over = exchange({ dispatch } as Dispatcher, {
    origin: 'http://127.0.0.1',
    path: '/',
    headers: {},
    timeoutMs: 600_000,
    maxBytes: 1000,
    scrub: (text) => text,
    onSent: () => {},
    signal: ending.signal,
  });
  handler.onRequestStart?.(connection, {});
  handler.onResponseStart?.(connection, 200, {});
  return {
    ...controller,
    decoders,
    receive: (chunks: number) => {
      for (let n = 0; n < chunks; n += 1) handler.onResponseData?.(connection, Buffer.of());
    },
    [Symbol.asyncDispose]: async () => {
      ending.abort(new Error('the test is over'));
      await over.catch(() => {});
    },
  };
}

it('a flood of tiny chunks is paused once a turn, until the next turn', async () => {
  await using given = setUp();
  given.receive(MAX_CHUNKS_PER_TURN - 1);
  expect(given.pause).not.toHaveBeenCalled();
  given.receive(1000);
  expect(given.pause).toHaveBeenCalledOnce();
  expect(given.resume).not.toHaveBeenCalled();
  await nextTurn();
  expect(given.resume).toHaveBeenCalledOnce();

  // Each turn has as many.
  given.receive(MAX_CHUNKS_PER_TURN - 1);
  expect(given.pause).toHaveBeenCalledOnce();
  given.receive(1);
  expect(given.pause).toHaveBeenCalledTimes(2);
});

it('decoders that are full are given nothing more before they have room', async () => {
  await using given = setUp();
  given.decoders.hasRoom = false;
  given.receive(1);
  expect(given.pause).toHaveBeenCalledOnce();
  await nextTurn();
  expect(given.resume).not.toHaveBeenCalled();
  given.decoders.drain();
  expect(given.resume).toHaveBeenCalledOnce();
});

it('decoders that have room again do not let in more chunks than a turn may have', async () => {
  await using given = setUp();
  given.receive(MAX_CHUNKS_PER_TURN - 1);
  given.decoders.hasRoom = false;
  given.receive(1);
  given.decoders.drain();
  expect(given.resume).not.toHaveBeenCalled();
  await nextTurn();
  expect(given.resume).toHaveBeenCalledOnce();
});

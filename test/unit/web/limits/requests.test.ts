import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import type { Handler } from '../../../../src/web/handler.ts';
import type { Route } from '../../../../src/web/request/target.ts';
import { limitRequests } from '../../../../src/web/limits/requests.ts';
import { fakeClock } from '../../../support/monitor.ts';

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

/** Requests a response that its client does not read to the end. */
function ask(route: Route, path = '/') {
  const response = new EventEmitter();
  const destroy = vi.fn<() => void>();
  const handle = vi.fn<Handler>();
  const setTimeout = vi.fn<(ms: number) => void>();
  const target = { path, search: '', route, host: undefined };
  /* oxlint-disable typescript/no-unsafe-type-assertion -- the only members that are used */
  limitRequests(handle, fakeClock())(
    { socket: { remoteAddress: '192.0.2.1', destroy, setTimeout } } as unknown as IncomingMessage,
    response as unknown as ServerResponse,
    target,
  );
  /* oxlint-enable typescript/no-unsafe-type-assertion */
  expect(handle).toHaveBeenCalledOnce();
  return { destroy, setTimeout, leave: () => response.emit('close') };
}

it.each(['metrics', 'other'] as const)(
  'the connection of a request of class %s is closed if the response is not read within 15 s',
  (route) => {
    const { destroy } = ask(route);

    vi.advanceTimersByTime(14_999);
    expect(destroy).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(destroy).toHaveBeenCalledOnce();
  },
);

it.each(['events', 'probe'] as const)(
  'the response to a request of class %s has no read deadline',
  (route) => {
    const { destroy } = ask(route);

    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(24 * 3600 * 1000);
    expect(destroy).not.toHaveBeenCalled();
  },
);

it('the read deadline is cancelled when the response closes', () => {
  const { destroy, leave } = ask('other');

  leave();

  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(15_000);
  expect(destroy).not.toHaveBeenCalled();
});

it('a reload has no deadline, and its connection may be idle meanwhile', () => {
  const { destroy, setTimeout } = ask('other', '/-/reload');

  expect(setTimeout.mock.calls).toEqual([[0]]);
  vi.advanceTimersByTime(24 * 3600 * 1000);
  expect(destroy).not.toHaveBeenCalled();
});

it.each([
  ['metrics', 16],
  ['other', 32],
  ['events', 500],
] as const)(
  'of class %s, %d requests are answered at the same time, and another one when one has ended',
  (route, max) => {
    const handle = vi.fn<Handler>();
    const limited = limitRequests(handle, fakeClock());
    const statuses: number[] = [];
    /** Requests a response. Returns what ends it. */
    const begin = () => {
      const writeHead = (status: number) => void statuses.push(status);
      const more = { setHeader: () => {}, end: () => {}, writeHead };
      const response = Object.assign(new EventEmitter(), more);
      const socket = { remoteAddress: '192.0.2.1', setTimeout: () => {}, destroy: () => {} };
      /* oxlint-disable typescript/no-unsafe-type-assertion -- the only members that are used */
      limited({ socket } as unknown as IncomingMessage, response as unknown as ServerResponse, {
        path: '/',
        search: '',
        route,
        host: undefined,
      });
      /* oxlint-enable typescript/no-unsafe-type-assertion */
      return () => response.emit('close');
    };
    const [end] = Array.from({ length: max }, begin);
    expect(statuses).toEqual([]);
    begin();
    expect(statuses).toEqual([503]);
    end?.();
    begin();
    begin();
    expect(handle).toHaveBeenCalledTimes(max + 1);
    expect(statuses).toEqual([503, 503]);
  },
);

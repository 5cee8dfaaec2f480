import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { limitOpenAnswers } from '../../../../src/web/limits/open-answers.ts';
import { fakeClock } from '../../../support/monitor.ts';

function setUp({ max = 4, areFinite = true } = {}) {
  const clock = fakeClock();
  const take = limitOpenAnswers({ max, areFinite, clock });
  const ended: string[] = [];
  /** Requests a place for a response, which a test knows by its name. */
  function ask(name: string, remoteAddress = name.charAt(0)) {
    const response = Object.assign(new EventEmitter(), { headersSent: false });
    const destroy = () => {
      ended.push(name);
      response.emit('close');
    };
    /* oxlint-disable typescript/no-unsafe-type-assertion -- the only members that are used */
    const request = { socket: { remoteAddress, destroy } } as unknown as IncomingMessage;
    const hasPlace = take(request, response as unknown as ServerResponse);
    /* oxlint-enable typescript/no-unsafe-type-assertion */
    const begin = () => {
      response.headersSent = true;
    };
    return { hasPlace, begin, leave: () => response.emit('close') };
  }
  const haveAll = (...names: readonly string[]) => names.every((name) => ask(name).hasPlace);
  return { clock, ask, haveAll, ended };
}

describe('limit of open responses', () => {
  it('refuses requests at the limit, and admits one again after a response has closed', () => {
    const { ask, haveAll, ended } = setUp();
    const first = ask('a1');
    expect(haveAll('a2', 'a3', 'a4')).toBe(true);
    expect(ask('a5').hasPlace).toBe(false);
    first.leave();
    expect(ask('a6').hasPlace).toBe(true);
    expect(ask('a7').hasPlace).toBe(false);
    expect(ended).toEqual([]);
  });

  it('closes the oldest response of the client with the most, for a client with fewer', () => {
    const { ask, haveAll, ended } = setUp();
    expect(haveAll('a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1')).toBe(true);
    expect(ended).toEqual(['a1', 'a2', 'a3']);
    expect(['a5', 'b3', 'c2'].map((name) => ask(name).hasPlace)).toEqual([false, false, false]);
    expect(ask('d1').hasPlace).toBe(true);
    expect(ask('e1').hasPlace).toBe(false);
    expect(ended).toEqual(['a1', 'a2', 'a3', 'b1']);
  });

  it('closes a response that is read for more than 2 s to admit a request, even of the same client', () => {
    const { clock, ask, haveAll, ended } = setUp();
    const [slow, waiting] = [ask('a1'), ask('a2')];
    expect(haveAll('a3', 'a4')).toBe(true);
    slow.begin();
    clock.advance(2000);
    expect(ask('a5').hasPlace).toBe(false);
    clock.advance(1);
    expect(ask('a6').hasPlace).toBe(true);
    expect(ask('a7').hasPlace).toBe(false);
    expect(ended).toEqual(['a1']);
    waiting.leave();
  });

  it('does not close a stream because it has been open for long', () => {
    const { clock, ask, ended } = setUp({ max: 1, areFinite: false });
    ask('a1').begin();
    clock.advance(60_000);
    expect(ask('a2').hasPlace).toBe(false);
    expect(ended).toEqual([]);
  });
});

import { Socket } from 'node:net';
import type { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import {
  createSilenceWatch,
  SilentConnectionError,
} from '../../../../src/store/postgres/silence.ts';

const STATEMENT = 'UPDATE evalwatch.project SET version = version + 1';
const LOOK_EVERY_MS = 1500;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Returns the statements that the server shows to a check, given the check's own one. */
type Shown = (own: string) => readonly string[];

function everyOther(...shown: readonly [Shown, Shown]): Shown {
  let looks = 0;
  return (own) => {
    looks += 1;
    return shown[looks % 2 === 1 ? 0 : 1](own);
  };
}

/** Waits for a statement on a silent connection; `outcome` receives the result. */
function setUp(shown: Shown, stream: object = {}) {
  let ends = 0;
  // Not `vi.fn`, which would handle the error.
  const end = async () => {
    ends += 1;
    throw new Error('the connection is gone already');
  };
  const query = async (own: string) => ({ rows: shown(own).map((text) => ({ query: text })) });
  const open = vi.fn<() => Promise<Client>>(async () => ({ query, end }) as unknown as Client);
  const watch = createSilenceWatch(open, systemClock);
  const answer = Promise.withResolvers<string>();
  const client = { connection: { stream } } as unknown as Client;
  const outcome = vi.fn<(outcome: unknown) => void>();
  void watch.during(STATEMENT, client, answer.promise).then(outcome, outcome);
  const looks = (count: number) => vi.advanceTimersByTimeAsync(count * LOOK_EVERY_MS);
  return { open, ends: () => ends, outcome, looks, answer: answer.resolve };
}

it('a statement fails as silent when two checks in a row find the server not running it', async () => {
  const { outcome, looks, open, ends } = setUp((own) => [own, 'SELECT 1']);
  await looks(1);
  expect(outcome).not.toHaveBeenCalled();
  await looks(1);
  expect(outcome).toHaveBeenCalledWith(expect.any(SilentConnectionError));
  // The connections of the checks are closed, and no other check follows.
  await looks(5);
  expect(open).toHaveBeenCalledTimes(2);
  expect(ends()).toBe(2);
});

describe('a statement without a response', () => {
  it.each<[string, Shown]>([
    ['works on its statement', (own) => [own, STATEMENT]],
    ['works on it, and cuts texts off', (own) => [own.slice(0, 20), STATEMENT.slice(0, 20)]],
    [
      'works on it at every other look',
      everyOther(
        (own) => [own],
        (own) => [own, STATEMENT],
      ),
    ],
    ['shows no statement', () => []],
    ['hides the texts of statements', () => ['', '']],
    ['shows other statements than the one that asks', () => ['SELECT 1']],
    [
      'refuses to answer',
      () => {
        throw new Error('permission denied');
      },
    ],
  ])('keeps waiting while the server %s', async (_, shown) => {
    const { outcome, looks, answer, open, ends } = setUp(shown);
    await looks(10);
    expect(outcome).not.toHaveBeenCalled();
    expect(ends()).toBe(open.mock.calls.length);
    answer('late');
    await looks(0);
    expect(outcome).toHaveBeenCalledWith('late');
  });

  it('keeps waiting while the server accepts no new connection, and fails once it does', async () => {
    const { outcome, looks, open } = setUp((own) => [own]);
    for (let n = 0; n < 10; n += 1) open.mockRejectedValueOnce(new Error('ECONNREFUSED'));
    await looks(10);
    expect(open).toHaveBeenCalledTimes(10);
    expect(outcome).not.toHaveBeenCalled();
    await looks(2);
    expect(outcome).toHaveBeenCalledWith(expect.any(SilentConnectionError));
  });

  it('keeps waiting while bytes arrive on its connection', async () => {
    let received = 0;
    const stream = new Socket();
    Object.defineProperty(stream, 'bytesRead', { get: () => received });
    const { outcome, looks } = setUp((own) => [own], stream);
    for (; received < 10; received += 1) await looks(1);
    expect(outcome).not.toHaveBeenCalled();
    // The first check still finds the last byte.
    await looks(3);
    expect(outcome).toHaveBeenCalledWith(expect.any(SilentConnectionError));
  });
});

it('a statement that is answered within 1.5 s causes no check', async () => {
  const { outcome, looks, answer, open } = setUp((own) => [own]);
  answer('soon');
  await looks(3);
  expect(outcome).toHaveBeenCalledWith('soon');
  expect(open).not.toHaveBeenCalled();
});

import { expect, it } from 'vitest';
import type { Status } from '../../../../../src/domain/status.ts';
import type { MoveCount } from '../../../../../src/monitor/ports/store.ts';
import {
  historyStart,
  SPAN_MS,
  SPANS,
  statusHistory,
} from '../../../../../src/web/page/model/history.ts';
import { NIGHT } from '../../../../support/page/world.ts';

const since = historyStart(NIGHT);
const window = { since, knownSince: since };

function move(span: number, from: MoveCount['from'], to: Status, listed: number): MoveCount {
  return { project: 'p', span, from, to, count: listed, listed };
}

function counts(values: Partial<Record<Status, number>>): ReadonlyMap<Status, number> {
  return new Map(Object.entries(values) as [Status, number][]);
}

it('the status history covers 24 hours, and its last span contains the current time', () => {
  expect(since % SPAN_MS).toBe(0);
  expect(NIGHT - since).toBeLessThan(SPANS * SPAN_MS);
  expect(NIGHT - since).toBeGreaterThanOrEqual((SPANS - 1) * SPAN_MS);
});

it('the status history is computed backwards from the current counts', () => {
  const moves = [
    move(10, 'NEW', 'PENDING', 3),
    move(20, 'PENDING', 'RUNNING', 2),
    move(95, 'RUNNING', 'FAILED', 1),
  ];

  const { spans } = statusHistory(
    counts({ PENDING: 1, RUNNING: 1, FAILED: 1, COMPLETED: 5 }),
    moves,
    window,
  );

  const at = (span: number) => Object.fromEntries(spans[span] ?? []);
  expect(spans).toHaveLength(SPANS);
  expect(at(95)).toEqual({ PENDING: 1, RUNNING: 1, FAILED: 1, COMPLETED: 5 });
  expect(at(94)).toEqual({ PENDING: 1, RUNNING: 2, FAILED: 0, COMPLETED: 5 });
  expect(at(19)).toEqual({ PENDING: 3, RUNNING: 0, FAILED: 0, COMPLETED: 5 });
  expect(at(9)).toEqual({ PENDING: 0, RUNNING: 0, FAILED: 0, COMPLETED: 5 });
});

it('the status history leaves out prompts that are no longer listed', () => {
  const gone = { ...move(50, 'RUNNING', 'COMPLETED', 0), count: 7 };

  const { spans } = statusHistory(counts({ COMPLETED: 1 }), [gone], window);

  expect(Object.fromEntries(spans[0] ?? [])).toEqual({ COMPLETED: 1, RUNNING: 0 });
});

it('the status history counts transitions with a future time in the last span', () => {
  const { spans } = statusHistory(
    counts({ FAILED: 1 }),
    [move(500, 'RUNNING', 'FAILED', 1)],
    window,
  );

  expect(spans[95]?.get('FAILED')).toBe(1);
  expect(spans[94]?.get('FAILED')).toBe(0);
});

it('the status history has no counts for spans that end before the known time', () => {
  const knownSince = since + 40 * SPAN_MS + 1;

  const { spans } = statusHistory(counts({ RUNNING: 1 }), [], { since, knownSince });

  expect(spans[39]).toBeUndefined();
  expect(spans[40]?.get('RUNNING')).toBe(1);
});

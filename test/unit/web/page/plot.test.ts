import { expect, it } from 'vitest';
import { DATASET_STATUSES, type Status } from '../../../../src/domain/status.ts';
import type { MoveCount } from '../../../../src/monitor/ports/store.ts';
import {
  bar,
  historyStart,
  legend,
  plot,
  SPAN_MS,
  SPANS,
  statusHistory,
} from '../../../../src/web/page/plot.ts';
import { loadAssets } from '../../../../src/web/page/routes.ts';
import { HOUR, NIGHT } from '../../../support/page/world.ts';

const render = async (html: ReturnType<typeof bar>) => String(await html).replaceAll(/\s+/g, ' ');
const since = historyStart(NIGHT);
const window = { since, knownSince: since };
const now = new Map<Status, number>([
  ['RUNNING', 0],
  ['COMPLETED', 9999],
  ['FAILED', 1],
]);

it('the bar shows one failure among 10,000 prompts with a visible width', async () => {
  const html = await render(bar(now));

  expect(Number(/class="FAILED" x="0" width="([\d.]+)"/.exec(html)?.[1])).toBeGreaterThan(5);
  expect(html).not.toContain('RUNNING');
});

it('the segments of the bar add up to its full width', async () => {
  const html = await render(bar(now));

  const widths = [...html.matchAll(/class="(?:FAILED|COMPLETED)" x="[\d.]+" width="([\d.]+)"/g)];
  expect(widths.reduce((sum, [, width]) => sum + Number(width), 0)).toBeCloseTo(960, 0);
});

it('the legend shows a symbol and a count for each status, and leaves out zeros', async () => {
  const html = await render(legend(now));

  expect(html).toMatch(/✗<\/span> FAILED<\/span\s*> <b>1<\/b>/);
  expect(html).toContain('<b>9,999</b>');
  expect(html).not.toContain('RUNNING');
  expect(await render(legend(new Map([['FAILED', 0]])))).toContain('none');
});

it('the plot has a text alternative with the change of each status', async () => {
  const moves = [
    { project: 'p', span: 90, from: 'RUNNING', to: 'FAILED', count: 1, listed: 1 } as const,
  ];
  const html = await render(plot(statusHistory(now, moves, window), NIGHT, undefined));

  expect(html).toContain('FAILED from 0 to 1, RUNNING from 1 to 0, COMPLETED from 9999 to 9999');
  expect(html).toContain('peak 10,000');
});

it('the plot shows since when it is known, and fades the time without monitoring', async () => {
  const knownSince = since + 40 * SPAN_MS;
  const history = statusHistory(now, [], { since, knownSince });

  const html = await render(plot(history, NIGHT, NIGHT - 3 * HOUR));

  expect(html).toMatch(
    /since <time class="clock" datetime="2026-11-20T13:15:00.000Z"\s*>13:15 UTC<\/time\s*>, peak/,
  );
  expect(html).toContain('class="outdated"');
});

it('the plot is empty for a project without prompts', async () => {
  const history = statusHistory(new Map([['FAILED', 0]]), [], window);

  expect(await render(plot(history, NIGHT, undefined))).toBe('');
});

it.each(DATASET_STATUSES)(
  'the bar shows %s in a colour that the stylesheet defines',
  async (status) => {
    expect(await render(bar(new Map([[status, 1]])))).toContain(`class="${status}"`);
    expect(loadAssets().style.body).toContain(`svg .${status}`);
  },
);

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

import { expect, it } from 'vitest';
import { DATASET_STATUSES, type Status } from '../../../../../src/domain/status.ts';
import { loadAssets } from '../../../../../src/web/page/assets.ts';
import { historyStart, SPAN_MS, statusHistory } from '../../../../../src/web/page/model/history.ts';
import { bar, legend, plot } from '../../../../../src/web/page/parts/plot.ts';
import { HOUR, NIGHT } from '../../../../support/page/world.ts';

const render = async (html: ReturnType<typeof bar>) => String(await html).replaceAll(/\s+/g, ' ');
const since = historyStart(NIGHT);
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
  const html = await render(
    plot(statusHistory(now, moves, { since, knownSince: since }), NIGHT, undefined),
  );

  expect(html).toContain('FAILED from 0 to 1, RUNNING from 1 to 0, COMPLETED from 9999 to 9999');
  expect(html).toContain('peak 10,000');
});

it('the plot shows since when it is known, and fades the time without monitoring', async () => {
  const knownSince = since + 40 * SPAN_MS;
  const history = statusHistory(now, [], { since, knownSince });

  const html = await render(plot(history, NIGHT, NIGHT - 3 * HOUR));

  expect(html).toContain('since 13:15 UTC');
  expect(html).toContain('class="outdated"');
});

it('the plot is empty for a project without prompts', async () => {
  const history = statusHistory(new Map([['FAILED', 0]]), [], { since, knownSince: since });

  expect(await render(plot(history, NIGHT, undefined))).toBe('');
});

it.each(DATASET_STATUSES)(
  'the bar shows %s in a colour that the stylesheet defines',
  async (status) => {
    expect(await render(bar(new Map([[status, 1]])))).toContain(`class="${status}"`);
    expect(loadAssets().style.body).toContain(`svg .${status}`);
  },
);

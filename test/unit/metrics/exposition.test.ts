import { describe, expect, it } from 'vitest';
import { renderFamilies, type Family } from '../../../src/metrics/exposition.ts';

interface Subject {
  readonly labels: string;
  readonly values: readonly (number | undefined)[];
}

const gauge: Family<Subject> = {
  name: 'g',
  type: 'gauge',
  help: 'Help.',
  samples: ({ values }, add) => {
    add(values[0]);
    add(values[1], 'a="x"');
  },
};
const HEADER = '# HELP g Help.\n# TYPE g gauge\n';

async function render(subjects: Iterable<Subject>, families = [gauge]): Promise<string> {
  return Buffer.concat(await renderFamilies(families, subjects)).toString();
}

describe('a metric family', () => {
  it('has HELP and TYPE once before the samples of all subjects', async () => {
    const subjects = [
      { labels: 's="1"', values: [1, 2] },
      { labels: 's="2"', values: [undefined, 0] },
      { labels: '', values: [3, 4] },
    ];
    const lines = 'g{s="1"} 1\ng{s="1",a="x"} 2\ng{s="2",a="x"} 0\ng 3\ng{a="x"} 4\n';
    expect(await render(subjects)).toBe(HEADER + lines);
    expect(await render(subjects, [gauge, { ...gauge, name: 'h' }])).toBe(
      HEADER + lines + (HEADER + lines).replaceAll(/\bg(?=[ {])/g, 'h'),
    );
  });

  it.each([
    ['no subject', []],
    ['no value', [{ labels: 's="1"', values: [] }]],
  ])('with %s is left out', async (_, subjects) => {
    expect(await render(subjects)).toBe('');
  });

  it('is rendered at most 25 subjects a turn, each read when it is rendered', async () => {
    let turn = 0;
    let immediate = setImmediate(function next() {
      turn += 1;
      immediate = setImmediate(next);
    });
    const perTurn: number[] = [];
    const value = (n: number) => 1e20 + n;
    function* subjects() {
      for (let n = 0; n < 120; n += 1) {
        perTurn[turn] = (perTurn[turn] ?? 0) + 1;
        yield { labels: `s="${n}"`, values: [value(n)] };
      }
    }
    const text = await render(subjects());
    clearImmediate(immediate);
    expect(Math.max(...perTurn)).toBe(25);
    const lines = Array.from({ length: 120 }, (_, n) => `g{s="${n}"} ${value(n)}\n`).join('');
    expect(text).toBe(HEADER + lines);
  });
});

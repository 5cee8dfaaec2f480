import { describe, expect, it } from 'vitest';
import { FamilyRenderer, renderGauge, type Family } from '../../../src/metrics/exposition.ts';

const gauge: Family<readonly (number | undefined)[]> = {
  name: 'g',
  type: 'gauge',
  help: 'Help.',
  samples: [{}, { labels: { a: 'x"\\\n' } }],
  values: (values) => values,
};

type Subjects = readonly (readonly [labels: string, values: readonly (number | undefined)[]])[];

async function render(
  renderer: FamilyRenderer<Subjects[number][1]>,
  subjects: Subjects,
): Promise<string> {
  for (const [labels, values] of subjects) renderer.add(labels, values);
  return await renderer.finish();
}

describe('a family', () => {
  it('has HELP and TYPE once before the samples of all subjects', async () => {
    const text = await render(new FamilyRenderer([gauge]), [
      ['s="1"', [1, 2]],
      ['s="2"', [undefined, 0]],
    ]);
    expect(text).toBe(
      '# HELP g Help.\n# TYPE g gauge\n' +
        'g{s="1"} 1\ng{s="1",a="x\\"\\\\\\n"} 2\ng{s="2",a="x\\"\\\\\\n"} 0\n',
    );
  });

  it.each([
    ['no subject', []],
    ['no value', [['s="1"', [undefined, undefined]] as const]],
  ])('with %s is left out', async (_, subjects) => {
    expect(await render(new FamilyRenderer([gauge]), subjects)).toBe('');
  });

  it.each<[string, Subjects]>([
    [
      'nothing',
      [
        ['s="1"', [1, 2]],
        ['s="2"', [3, undefined]],
      ],
    ],
    [
      'a value',
      [
        ['s="1"', [1, 5]],
        ['s="2"', [3, undefined]],
      ],
    ],
    [
      'a value that comes',
      [
        ['s="1"', [1, 2]],
        ['s="2"', [3, 0]],
      ],
    ],
    [
      'a value that goes',
      [
        ['s="1"', [undefined, 2]],
        ['s="2"', [3, undefined]],
      ],
    ],
    [
      'a value that is no number',
      [
        ['s="1"', [Number.NaN, 2]],
        ['s="2"', [3, undefined]],
      ],
    ],
    [
      'a subject',
      [
        ['s="0"', [1, 2]],
        ['s="2"', [3, undefined]],
      ],
    ],
    [
      'the order',
      [
        ['s="2"', [3, undefined]],
        ['s="1"', [1, 2]],
      ],
    ],
    [
      'a subject more',
      [
        ['s="1"', [1, 2]],
        ['s="2"', [3, undefined]],
        ['s="3"', [1, 1]],
      ],
    ],
    ['a subject less', [['s="2"', [3, undefined]]]],
    ['no subject any more', []],
  ])('is the same as rendered anew when there changed %s', async (_, subjects) => {
    const renderer = new FamilyRenderer([gauge]);
    await render(renderer, [
      ['s="1"', [1, 2]],
      ['s="2"', [3, undefined]],
    ]);
    const text = await render(renderer, subjects);
    expect(text).toBe(await render(new FamilyRenderer([gauge]), subjects));
    expect(await render(renderer, subjects)).toBe(text);
  });

  it('of constant subjects has the labels of each', async () => {
    const values = [1, 2];
    const renderer = new FamilyRenderer([gauge], { areImmutable: true });
    const subjects: readonly Subjects[] = [
      [
        ['s="1"', values],
        ['s="2"', values],
      ],
      [['s="2"', values]],
      [['s="2"', [1, 3]]],
    ];
    for (const some of subjects) {
      expect(await render(renderer, some)).toBe(await render(new FamilyRenderer([gauge]), some));
    }
  });
});

describe('a number', () => {
  it.each([
    [0, '0'],
    [1_767_225_600.123, '1767225600.123'],
    [Number.MAX_SAFE_INTEGER, '9007199254740991'],
    [1e-7, '1e-7'],
    [Infinity, '+Inf'],
    [-Infinity, '-Inf'],
    [Number.NaN, 'NaN'],
  ])('%d is written as %s', (value, text) => {
    expect(renderGauge('g', 'Help.', value)).toBe(`# HELP g Help.\n# TYPE g gauge\ng ${text}\n`);
  });
});

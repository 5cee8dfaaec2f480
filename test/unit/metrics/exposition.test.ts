import { describe, expect, it } from 'vitest';
import { renderFamilies, renderGauge, type Family } from '../../../src/metrics/exposition.ts';

const gauge: Family<readonly (number | undefined)[]> = {
  name: 'g',
  type: 'gauge',
  help: 'Help.',
  samples: [{}, { labels: { a: 'x"\\\n' } }],
  values: (values) => values,
};

describe('a family', () => {
  it('has HELP and TYPE once before the samples of all subjects', () => {
    const text = renderFamilies(
      [gauge],
      [
        ['s="1"', [1, 2]],
        ['s="2"', [undefined, 0]],
      ],
    );
    expect(text).toBe(
      '# HELP g Help.\n# TYPE g gauge\n' +
        'g{s="1"} 1\ng{s="1",a="x\\"\\\\\\n"} 2\ng{s="2",a="x\\"\\\\\\n"} 0\n',
    );
  });

  it.each([
    ['no subject', []],
    ['no value', [['s="1"', [undefined, undefined]] as const]],
  ])('with %s is left out', (_, subjects) => {
    expect(renderFamilies([gauge], subjects)).toBe('');
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

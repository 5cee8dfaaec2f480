import { describe, expect, it } from 'vitest';
import { familyRenderer, renderGauge, type Family } from '../../../src/metrics/exposition.ts';

const gauge: Family<readonly (number | undefined)[]> = {
  name: 'g',
  type: 'gauge',
  help: 'Help.',
  samples: [{}, { labels: { a: 'x"\\\n' } }],
  values: (values) => values,
};

type Subjects = readonly (readonly [labels: string, values: readonly (number | undefined)[]])[];

/** Reads `1: 5 -`: the subject s="1" with the values 5 and none. */
const subjectsOf = (text: string): Subjects =>
  text.split(', ').map((subject) => {
    const [name, values = ''] = subject.split(': ');
    const numbers = values.split(' ').map((value) => (value === '-' ? undefined : Number(value)));
    return [`s="${name}"`, numbers];
  });

const newRenderer = () =>
  familyRenderer<Subjects[number], Subjects[number][1]>([gauge], ([labels, values], add) =>
    add(labels, values),
  );

function render(renderer: ReturnType<typeof newRenderer>, subjects: Subjects): string {
  return Buffer.concat([...renderer(subjects)]).toString();
}

describe('a metric family', () => {
  it('has HELP and TYPE once before the samples of all subjects', () => {
    const text = render(newRenderer(), subjectsOf('1: 1 2, 2: - 0'));
    expect(text).toBe(
      '# HELP g Help.\n# TYPE g gauge\n' +
        'g{s="1"} 1\ng{s="1",a="x\\"\\\\\\n"} 2\ng{s="2",a="x\\"\\\\\\n"} 0\n',
    );
  });

  it.each([
    ['no subject', []],
    ['no value', [['s="1"', [undefined, undefined]] as const]],
  ])('with %s is left out', (_, subjects) => {
    expect(render(newRenderer(), subjects)).toBe('');
  });

  it.each([
    ['nothing', '1: 1 2, 2: 3 -'],
    ['a value', '1: 1 5, 2: 3 -'],
    ['a value that comes', '1: 1 2, 2: 3 0'],
    ['a value that goes', '1: - 2, 2: 3 -'],
    ['a value that is no number', '1: NaN 2, 2: 3 -'],
    ['a subject', '0: 1 2, 2: 3 -'],
    ['the order', '2: 3 -, 1: 1 2'],
    ['a subject more', '1: 1 2, 2: 3 -, 3: 1 1'],
    ['a subject less', '2: 3 -'],
    ['no subject any more', undefined],
  ])('renders the same from its cache as from scratch after this change: %s', (_, after) => {
    const renderer = newRenderer();
    const subjects = after === undefined ? [] : subjectsOf(after);
    render(renderer, subjectsOf('1: 1 2, 2: 3 -'));
    const text = render(renderer, subjects);
    expect(text).toBe(render(newRenderer(), subjects));
    expect(render(renderer, subjects)).toBe(text);
  });

  it('has the labels of each subject, even if subjects share their values', () => {
    const renderer = newRenderer();
    const values = [1, 2];
    const subjects: readonly Subjects[] = [
      [
        ['s="1"', values],
        ['s="2"', values],
      ],
      [['s="2"', values]],
      [['s="2"', [1, 3]]],
    ];
    for (const some of subjects) {
      expect(render(renderer, some)).toBe(render(newRenderer(), some));
    }
  });

  it('reuses unchanged chunks and renders only changed ones', () => {
    const renderer = newRenderer();
    const before: Subjects = Array.from({ length: 175 }, (_, n) => [`s="${n}"`, [n, 0]]);
    const first = [...renderer(before)];
    expect(first).toHaveLength(1 + 4);
    const after = before.with(60, ['s="60"', [-1, 0]]);
    const second = [...renderer(after)];
    expect(second.map((piece, index) => piece === first[index])).toEqual([
      true,
      true,
      false,
      true,
      true,
    ]);
    expect(Buffer.concat(second)).toEqual(Buffer.concat([...newRenderer()(after)]));
    // The pieces of the previous scrape are unchanged.
    expect(Buffer.concat(first)).toEqual(Buffer.concat([...newRenderer()(before)]));
  });

  it('is the same when two scrapes are interleaved', () => {
    const renderer = newRenderer();
    const one: Subjects = Array.from({ length: 120 }, (_, n) => [`s="${n}"`, [n, 0]]);
    const other: Subjects = Array.from({ length: 70 }, (_, n) => [`s="${n}"`, [n, n]]);
    const ofOne = renderer(one);
    const pieces = [ofOne.next().value, ofOne.next().value];
    expect(render(renderer, other)).toBe(render(newRenderer(), other));
    pieces.push(...ofOne);
    const text = Buffer.concat(pieces.filter((piece) => piece !== undefined)).toString();
    expect(text).toBe(render(newRenderer(), one));
    expect(render(renderer, other)).toBe(render(newRenderer(), other));
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

const GOOD = `service:
  base_url: https://evaluation.example.com
  api_key_file: key
projects:
  - id: checkout-bot
`;

/** Name of what a text repeats, and the text. */
export type LargeText = readonly [what: string, text: string];

/** Returns texts of about this many bytes, each of which is wrong. */
export function largeTexts(bytes: number): readonly LargeText[] {
  const fill = (unit: string, size = bytes) => unit.repeat(size / unit.length);
  const numbered = (make: (n: number) => string) => {
    const parts: string[] = [];
    for (let size = 0; size < bytes; size += parts.at(-1)?.length ?? 0) {
      parts.push(make(parts.length));
    }
    return parts.join('');
  };
  const withService = (line: string) => GOOD.replace('projects:', `  ${line}\nprojects:`);
  return [
    ['many brackets', fill('[')],
    ['many braces', fill('{a: ')],
    ['many dashes', fill('- ')],
    ['many lines of dashes', fill('-\n')],
    ['many numbers', `projects: [${fill('1,')}]`],
    ['many quotes', fill('"')],
    ['many tags', `projects:\n${fill('- !x a\n')}`],
    ['many comments', fill('#\n')],
    ['deep indentation', indented(2000)],
    ['many keys', numbered((n) => `k${n}: 1\n`)],
    ['one key many times', fill('a: 1\n')],
    ['many aliases of a scalar', `a: &a 1\nb:\n${fill('- *a\n')}`],
    [
      'many aliases of a large mapping',
      `x: &x {${Array.from({ length: 1000 }, (_, n) => `k${n}: 1,`).join('')}}\nprojects:\n${'- *x\n'.repeat(9000)}`,
    ],
    ['aliases of aliases', `a0: &a0 [1]\n${numbered((n) => `a${n + 1}: &a${n + 1} [*a${n}]\n`)}`],
    ['many wrong projects', GOOD + fill('  - {}\n')],
    ['many wrong zones', GOOD + numbered((n) => `  - {id: p${n}, timezone: Berlin${n}}\n`)],
    ['many long unknown keys', numbered((n) => `${'k'.repeat(35)}${n}: 1\n`)],
    ['a long address', GOOD.replace('.com', `.com${fill('/')}x y`)],
    ['a long duration', withService(`timeout: ${fill('1')}s`)],
    ['a long schedule', `${GOOD}schedule: "${fill('1,')}1 * * * *"\n`],
    ['a long listen address', `${GOOD}web: { listen: "${fill(':')}x" }\n`],
  ];
}

function indented(levels: number): string {
  return Array.from({ length: levels }, (_, level) => `${' '.repeat(level)}a:\n`).join('');
}

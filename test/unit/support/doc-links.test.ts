import { expect, it } from 'vitest';
import {
  addressesIn,
  anchorsOf,
  brokenReferences,
  citationsIn,
  contractCitationsIn,
  linksIn,
  type ReadFile,
} from '../../support/doc-links.ts';

const PAGE =
  '# Page\n\n## Reading `items`\n\n## error_info\n\n## Reading items\n\n```\n# No heading\n```\n';
const page: ReadFile = (path) => (path === 'docs/page.md' ? PAGE : undefined);

it('anchorsOf returns the anchors that GitHub generates', () => {
  expect([...anchorsOf(PAGE)]).toEqual(['page', 'reading-items', 'error_info', 'reading-items-1']);
});

it.each([
  ['reading-items', []],
  ['reading-item', ['src/a.ts:2: docs/page.md#reading-item']],
])('citationsIn finds a misspelt anchor in a comment (%s)', (anchor, broken) => {
  const source = `const a = 1;\n/** So it is (docs/page.md#${anchor}). */`;
  expect(brokenReferences('src/a.ts', citationsIn(source), page)).toEqual(broken);
});

it.each([
  ['a missing page', '// See missing.md.', ['src/a.ts:1: missing.md']],
  ['a missing page in a text', "const a = 'docs/missing.md';", ['src/a.ts:1: docs/missing.md']],
  ['no page in code that is not under docs/', "const a = 'missing.md';", []],
])('citationsIn finds %s', (_, source, broken) => {
  expect(brokenReferences('src/a.ts', citationsIn(source), page)).toEqual(broken);
});

it.each([
  ['[a](page.md#page), [b](#other)', ['docs/other.md:1: docs/other.md#other']],
  ['[a](page.md#pages)', ['docs/other.md:1: docs/page.md#pages']],
  ['[a](../page.md)', ['docs/other.md:1: page.md']],
  ['[a](https://example.com/x.md#y) `[b](c.md)`', []],
])('linksIn finds the broken links of %s', (markdown, broken) => {
  const readFile: ReadFile = (path) => (path === 'docs/other.md' ? markdown : page(path));
  const found = linksIn('docs/other.md', markdown);
  expect(brokenReferences('docs/other.md', found, readFile)).toEqual(broken);
});

const ADDRESS = 'https://git.example/a/b/blob/main';

it.each([
  [`runbook_url: ${ADDRESS}/docs/page.md#error_info`, []],
  [`see ${ADDRESS}/docs/page.md.`, []],
  [
    `"url": "${ADDRESS}/docs/page.md#errors", "${ADDRESS}/a"`,
    ['x:1: docs/page.md#errors', 'x:1: a'],
  ],
  ['https://git.example/other/b/blob/main/missing.md', []],
])('addressesIn finds the broken absolute links of %s', (text, broken) => {
  expect(brokenReferences('x', addressesIn(text, ADDRESS), page)).toEqual(broken);
});

it('contractCitationsIn finds numbered contracts, also across a line break, and no other use of the word', () => {
  const text = '// See contract 4.\n/*\n * (contract\n * 2)\n */\n// contract tests of 3 engines';
  expect(contractCitationsIn(text)).toEqual([1, 3]);
});

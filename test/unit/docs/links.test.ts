import { globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { FILES_ADDRESS } from '../../../scripts/repository.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const PAGES = ['*.md', 'docs/**/*.md'];
const SOURCES = ['src', 'scripts', 'test', 'proof', 'bench', 'config', 'assembly'].map(
  (folder) => `${folder}/**/*.{ts,js,sql,css,json,yaml,yml,env,service,md}`,
);

const read = (path: string) => readFileSync(root + path, 'utf8');
const files = (patterns: readonly string[]) => globSync(patterns, { cwd: root }).toSorted();
/** Matches a line that begins with a comment, or has one after code. */
const COMMENT = /^\s*(?:\/\/|\/\*|\*|#|--)|\s\/\/\s/;
const PAGE_IN_COMMENT = /(?<![\w/.:-])(?:[\w.-]+\/)*[\w-]+\.md\b(?:#[\w-]+)?/g;
const PAGE_IN_CODE = /\bdocs\/(?:[\w-]+\/)*[\w-]+\.md\b(?:#[\w-]+)?/g;

it('every link of a page leads to a file and a heading that exist', () => {
  const links = files(PAGES).map((page) => ({ page, found: linksIn(page, read(page)) }));
  const broken = links.flatMap(({ page, found }) => brokenReferences(page, found));
  expect(broken).toEqual([]);
  expect(links.flatMap(({ found }) => found).length).toBeGreaterThan(100);
});

it('every page and heading that a source cites exists', () => {
  const cited = files(SOURCES).map((file) => ({ file, found: citationsIn(read(file)) }));
  const broken = cited.flatMap(({ file, found }) => brokenReferences(file, found));
  expect(broken).toEqual([]);
  expect(cited.flatMap(({ found }) => found).length).toBeGreaterThan(100);
});

it('every absolute link to a file of the repository leads to a file and a heading that exist', () => {
  const everywhere = files([...SOURCES, ...PAGES, 'package.json', 'Dockerfile']);
  const linked = everywhere.map((file) => ({
    file,
    found: addressesIn(read(file), FILES_ADDRESS),
  }));
  const broken = linked.flatMap(({ file, found }) => brokenReferences(file, found));
  expect(broken).toEqual([]);
  const linking = linked.filter(({ found }) => found.length > 0).map(({ file }) => file);
  expect(linking).toEqual(
    expect.arrayContaining([
      'config/grafana/dashboards/evalwatch.json',
      'config/kubernetes/overlays/prometheus-operator/prometheus-rule.yaml',
      'config/prometheus/evalwatch.rules.yml',
    ]),
  );
});

/** A link or citation of a document: its line, and the path and heading that it names. */
interface Reference {
  readonly line: number;
  /** Relative to the root of the repository. */
  readonly path: string;
  readonly anchor: string | undefined;
}

/** Returns the relative links of a Markdown page outside of code. */
function linksIn(page: string, markdown: string): readonly Reference[] {
  return proseLines(markdown).flatMap((text, index) =>
    [...text.replace(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)[^)]*\)|(?:src|href)="([^"]+)"/g)]
      .map(([, link, attribute]) => link ?? attribute ?? '')
      .filter((target) => !/^[a-z][a-z+.-]*:/i.test(target))
      .map((target) => {
        const [path = '', anchor] = target.split('#');
        const from = path === '' ? page : normalize(join(dirname(page), decodeURI(path)));
        return { line: index + 1, path: from, anchor };
      }),
  );
}

/** Returns the documents that a source cites: any in its comments, those under docs/ anywhere. */
function citationsIn(source: string): readonly Reference[] {
  return source.split('\n').flatMap((text, index) =>
    [...text.matchAll(COMMENT.test(text) ? PAGE_IN_COMMENT : PAGE_IN_CODE)].map(([target]) => {
      const [path = '', anchor] = target.split('#');
      return { line: index + 1, path, anchor };
    }),
  );
}

/** Returns the links of a text to files below an absolute address, such as the repository's. */
function addressesIn(text: string, address: string): readonly Reference[] {
  return text.split('\n').flatMap((line, index) =>
    line
      .split(`${address}/`)
      .slice(1)
      .map((rest) => {
        const [, path = '', anchor] = /^([\w./-]*)(?:#([\w-]*))?/.exec(rest) ?? [];
        // A final full stop belongs to the sentence. A template placeholder cuts the path after its folder.
        return { line: index + 1, path: path.replace(/\.$/, ''), anchor };
      }),
  );
}

/** Returns the references whose file or heading does not exist, as `file:line: target`. */
function brokenReferences(file: string, references: readonly Reference[]): readonly string[] {
  return references
    .filter(({ path, anchor }) => {
      const found = statSync(join(root, path), { throwIfNoEntry: false });
      if (found === undefined) return true;
      return anchor !== undefined && !(found.isFile() && anchorsOf(read(path)).has(anchor));
    })
    .map(
      ({ line, path, anchor }) =>
        `${file}:${line}: ${path}${anchor === undefined ? '' : `#${anchor}`}`,
    );
}

/** Returns the heading anchors of a Markdown page, by GitHub's rules. */
function anchorsOf(markdown: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const line of proseLines(markdown)) {
    const [, heading] = /^#{1,6}\s+(.+?)\s*#*$/.exec(line) ?? [];
    if (heading === undefined) continue;
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count += 1) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Returns the lines of a page, with those in fenced code blocks empty. */
function proseLines(markdown: string): readonly string[] {
  let fence: string | undefined;
  return markdown.split('\n').map((line) => {
    const [, mark] = /^\s*(`{3,}|~{3,})/.exec(line) ?? [];
    if (fence === undefined) {
      fence = mark;
      return mark === undefined ? line : '';
    }
    if (mark?.startsWith(fence) === true) fence = undefined;
    return '';
  });
}

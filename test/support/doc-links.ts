import { dirname, join, normalize } from 'node:path';

/** A link or citation of a document: its line, and the path and heading that it names. */
interface Reference {
  readonly line: number;
  /** Relative to the root of the repository. */
  readonly path: string;
  readonly anchor: string | undefined;
}

/** Reads a file of the repository; undefined if there is none. A directory has the text ''. */
export type ReadFile = (path: string) => string | undefined;

/** Matches a line that begins with a comment, or has one after code. */
const COMMENT = /^\s*(?:\/\/|\/\*|\*|#|--)|\s\/\/\s/;
const PAGE_IN_COMMENT = /(?<![\w/.:-])(?:[\w.-]+\/)*[\w-]+\.md\b(?:#[\w-]+)?/g;
const PAGE_IN_CODE = /\bdocs\/(?:[\w-]+\/)*[\w-]+\.md\b(?:#[\w-]+)?/g;

/** Returns the relative links of a Markdown page outside of code. */
export function linksIn(page: string, markdown: string): readonly Reference[] {
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
export function citationsIn(source: string): readonly Reference[] {
  return source.split('\n').flatMap((text, index) =>
    [...text.matchAll(COMMENT.test(text) ? PAGE_IN_COMMENT : PAGE_IN_CODE)].map(([target]) => {
      const [path = '', anchor] = target.split('#');
      return { line: index + 1, path, anchor };
    }),
  );
}

/** Returns the links of a text to files below an absolute address, such as the repository's. */
export function addressesIn(text: string, address: string): readonly Reference[] {
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
export function brokenReferences(
  file: string,
  references: readonly Reference[],
  readFile: ReadFile,
): readonly string[] {
  return references
    .filter(({ path, anchor }) => {
      const text = readFile(path.replace(/\/$/, ''));
      if (text === undefined) return true;
      return anchor !== undefined && !anchorsOf(text).has(anchor);
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

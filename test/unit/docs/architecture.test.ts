import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const MAX_FILES = 20;
/** Folders that the page describes in the row of the folder above. */
const PARTS = /^(store\/\w+|config|cli|simulator|web\/page)\//;

function foldersOf(path: string): readonly string[] {
  return readdirSync(join(root, 'src', path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(path, name))
    .flatMap((folder) => [folder, ...foldersOf(folder)]);
}

function filesOf(folder: string): readonly string[] {
  return readdirSync(join(root, 'src', folder), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
}

it('docs/architecture.md lists the folders of src/, and no others', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const rows = page.slice(page.indexOf('## Folders'), page.indexOf('## Where to make a change'));
  const listed = [...rows.matchAll(/^\| `([a-z/-]+)`/gm)].map(([, folder]) => folder ?? '');

  expect(listed.toSorted()).toEqual(
    foldersOf('')
      .filter((folder) => !PARTS.test(folder))
      .toSorted(),
  );
});

it('every path in docs/architecture.md exists', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const paths = [...page.matchAll(/`((?:src|config|test|scripts|docs)\/[\w./-]*\w\/?)`/g)].map(
    ([, path]) => path ?? '',
  );

  expect(paths.length).toBeGreaterThan(10);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

it(`no folder of src/ directly contains more than ${MAX_FILES} files`, () => {
  const large = foldersOf('').filter((folder) => filesOf(folder).length > MAX_FILES);

  expect(large).toEqual([]);
});

it('the root of src/ has the entry points only', () => {
  expect(filesOf('').toSorted()).toEqual(['health-check.ts', 'main.js']);
});

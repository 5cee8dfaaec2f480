import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { KINDS } from '../../../src/domain/status.ts';
import { alerts } from '../prometheus/rules-file.ts';

// What these pages list is what there is.

const root = join(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const architecture = read('docs/architecture.md');

const MAX_FILES = 20;
/** Folders that the page describes in the row of the folder above. */
const PARTS = /^(store\/\w+|config|cli|web\/page)\//;

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
  const rows = architecture.slice(
    architecture.indexOf('## Folders'),
    architecture.indexOf('## Where to make a change'),
  );
  const listed = [...rows.matchAll(/^\| `([a-z/-]+)`/gm)].map(([, folder]) => folder ?? '');

  expect(listed.toSorted()).toEqual(
    foldersOf('')
      .filter((folder) => !PARTS.test(folder))
      .toSorted(),
  );
});

it('every path in docs/architecture.md exists', () => {
  const paths = [
    ...architecture.matchAll(/`((?:src|config|test|scripts|docs)\/[\w./-]*\w\/?)`/g),
  ].map(([, path]) => path ?? '');

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

/** Returns the names in the sources. A name that is built from a kind yields one name per kind. */
function eventsOfSources(): ReadonlySet<string> {
  const sources = globSync('src/**/*.ts', { cwd: root }).map(read);
  const names = sources.flatMap((source) =>
    [...source.matchAll(/\bevent(?::| =) (?:'([a-z_]+\.[a-z_]+)'|`([^`]+)`)/g)].map(
      ([, name, template]) => name ?? template ?? '',
    ),
  );
  return new Set(
    names.flatMap((name) =>
      name.startsWith('${kind}') ? KINDS.map((kind) => name.replace('${kind}', kind)) : [name],
    ),
  );
}

it('docs/operations.md lists exactly the events that are logged', () => {
  const listed = [...read('docs/operations.md').matchAll(/^\| `([a-z_]+\.[a-z_]+)` /gm)].map(
    ([, name]) => name ?? '',
  );
  expect(listed.toSorted()).toEqual([...eventsOfSources()].toSorted());
});

it('docs/alerting.md lists every alert once, with its severity', () => {
  const rows = read('docs/alerting.md')
    .matchAll(/^\| \[(\w+)\]\(runbooks\/\1\.md\) +\| .+ \| (\w+) +\|$/gm)
    .map(([, alert, severity]) => `${alert} ${severity}`);
  const shipped = alerts.map(({ alert, labels }) => `${alert} ${labels.severity}`);
  expect([...rows].toSorted()).toEqual(shipped.toSorted());
});

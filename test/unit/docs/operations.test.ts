import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { KINDS } from '../../../src/domain/status.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const page = readFileSync(`${root}docs/operations.md`, 'utf8');

/** Returns the names in the sources. A name that is built from a kind yields one name per kind. */
function eventsOfSources(): ReadonlySet<string> {
  const sources = globSync('src/**/*.ts', { cwd: root }).map((file) =>
    readFileSync(root + file, 'utf8'),
  );
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
  const listed = [...page.matchAll(/^\| `([a-z_]+\.[a-z_]+)` /gm)].map(([, name]) => name ?? '');
  expect(listed.toSorted()).toEqual([...eventsOfSources()].toSorted());
});

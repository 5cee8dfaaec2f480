import { globSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { FILES_ADDRESS } from '../../../scripts/repository.ts';
import {
  addressesIn,
  brokenReferences,
  citationsIn,
  linksIn,
  type ReadFile,
} from '../../support/doc-links.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const PAGES = ['*.md', 'docs/**/*.md'];
const SOURCES = ['src', 'scripts', 'test', 'proof', 'bench', 'config', 'assembly'].map(
  (folder) => `${folder}/**/*.{ts,js,sql,css,json,yaml,yml,env,service,md}`,
);

const read = (path: string) => readFileSync(root + path, 'utf8');
const files = (patterns: readonly string[]) => globSync(patterns, { cwd: root }).toSorted();
const inRepository: ReadFile = (path) => {
  const found = statSync(root + path, { throwIfNoEntry: false });
  return found && (found.isFile() ? read(path) : '');
};

it('every link of a page leads to a file and a heading that exist', () => {
  const links = files(PAGES).map((page) => ({ page, found: linksIn(page, read(page)) }));
  const broken = links.flatMap(({ page, found }) => brokenReferences(page, found, inRepository));
  expect(broken).toEqual([]);
  expect(links.flatMap(({ found }) => found).length).toBeGreaterThan(100);
});

it('every page and heading that a source cites exists', () => {
  const cited = files(SOURCES).map((file) => ({ file, found: citationsIn(read(file)) }));
  const broken = cited.flatMap(({ file, found }) => brokenReferences(file, found, inRepository));
  expect(broken).toEqual([]);
  expect(cited.flatMap(({ found }) => found).length).toBeGreaterThan(100);
});

it('every absolute link to a file of the repository leads to a file and a heading that exist', () => {
  const everywhere = files([...SOURCES, ...PAGES, 'package.json', 'Dockerfile']);
  const linked = everywhere.map((file) => ({
    file,
    found: addressesIn(read(file), FILES_ADDRESS),
  }));
  const broken = linked.flatMap(({ file, found }) => brokenReferences(file, found, inRepository));
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

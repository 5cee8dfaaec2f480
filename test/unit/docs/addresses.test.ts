import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { addressOf, REPOSITORY, withAddress } from '../../../scripts/repository.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
/** Files into which `npm run generate` writes the address of package.json. */
const NAMING =
  /^(?:(?:README|SECURITY)\.md|package\.json|config\/prometheus\/[\w.]+\.yml|config\/grafana\/dashboards\/evalwatch\.json|config\/kubernetes\/overlays\/prometheus-operator\/prometheus-rule\.yaml)$/;
const EVERYTHING = [
  '*.{md,json,ts}',
  'Dockerfile',
  '{src,scripts,test,proof,bench,config,docs,assembly}/**/*.{ts,js,sql,css,json,yaml,yml,env,service,md,html}',
];
const OTHER = 'https://git.example/team/watch';

const read = (file: string) => readFileSync(root + file, 'utf8');
const files = globSync(EVERYTHING, { cwd: root }).filter((file) => file !== 'package-lock.json');

describe('the address of the repository', () => {
  it('appears only in files that npm run generate rewrites', () => {
    const naming = files.filter((file) => read(file).includes(REPOSITORY));
    expect(naming.filter((file) => !NAMING.test(file))).toEqual([]);
    expect(naming).toContain('config/prometheus/evalwatch.rules.yml');
    expect(naming).toContain('SECURITY.md');
  });

  it.each([
    [`runbook_url: ${REPOSITORY}/blob/main/docs/security.md`],
    [`[report](${REPOSITORY}/security/advisories/new)`],
    [`"homepage": "${REPOSITORY}#readme"`],
    [`"bugs": "${REPOSITORY}/issues"`],
    [`git clone ${REPOSITORY}.git && cd x`],
  ])('is replaced in %s', (text) => {
    expect(withAddress(text, OTHER)).toBe(text.replace(REPOSITORY, OTHER));
  });

  it('is read from repository.url only in the form git+https://HOST/PATH.git', () => {
    expect(addressOf('git+https://git.example/a/b.git')).toBe('https://git.example/a/b');
    expect(() => addressOf('https://git.example/a/b')).toThrow('must be git+https://');
  });
});

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { fillPackageDirectory } from '../../../scripts/package-directory.ts';
import { shippedPackages } from '../../../scripts/shipped-packages.ts';
import { KEY } from '../../support/evalwatch.ts';
import { startAlpha } from '../../support/service.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const ROOT = join(import.meta.dirname, '../../..');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly version: string;
};
const run = promisify(execFile);
const env = {
  PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`,
  HOME: process.env['HOME'],
  EVAL_KEY: KEY,
};

// `npm run test:package` also packs and installs it with npm.
it('the npm package has the shipped files only, and its commands run from node_modules', async () => {
  await using place = await temporaryDirectory();
  const cwd = place.path;
  const installed = join(cwd, 'node_modules/evalwatch');
  await mkdir(installed, { recursive: true });
  await fillPackageDirectory(installed);
  const manifest = readFileSync(join(installed, 'package.json'), 'utf8');
  expect(manifest).not.toMatch(/"(?:dev|optional)Dependencies"|"scripts"/);
  expect((await readdir(installed)).toSorted()).toEqual(
    [
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'config',
      'dist',
      'node_modules',
      'package.json',
    ].toSorted(),
  );
  for (const [path, { version: pinned }] of await shippedPackages()) {
    const text = readFileSync(join(installed, path, 'package.json'), 'utf8');
    expect(JSON.parse(text)).toMatchObject({
      name: path.replace(/^.*node_modules\//, ''),
      version: pinned,
    });
  }

  const { bin } = JSON.parse(manifest) as { readonly bin: { readonly evalwatch: string } };
  const evalwatch = async (...args: string[]) =>
    (await run(join(installed, bin.evalwatch), args, { cwd, env })).stdout;
  expect(await evalwatch('--version')).toBe(`${version}\n`);
  await evalwatch('init', 'example.yaml');
  expect(readFileSync(join(cwd, 'example.yaml'), 'utf8')).toMatch(/^# Configuration of evalwatch/);
  await using service = await startAlpha();
  await writeFile(
    join(cwd, 'evalwatch.yaml'),
    JSON.stringify({
      service: { base_url: service.url, api_key_env: 'EVAL_KEY' },
      projects: [{ id: 'alpha' }],
      store: { path: 'evalwatch.db' },
    }),
  );
  const config = ['--config', 'evalwatch.yaml'];
  expect(await evalwatch('check', ...config)).toContain('alpha');
  // Needs SQLite's binary, and the migrations and the scanner, which the compiler does not copy.
  expect(await evalwatch('poll', '--json', ...config)).toContain('"alpha"');
});

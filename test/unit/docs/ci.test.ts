import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import { createProgram } from '../../../src/cli/main.ts';

const page = readFileSync(new URL('../../../docs/ci.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) =>
  parseDocument(text ?? ''),
);
/** The texts of a document that the shell runs. */
const scripts = examples.map((document) =>
  Object.values((document.toJS() as { jobs?: object }).jobs ?? (document.toJS() as object)).flatMap(
    ({ steps, script }: { steps?: readonly { run?: string }[]; script?: readonly string[] }) =>
      script ?? (steps ?? []).flatMap(({ run }) => run ?? []),
  ),
);

it('docs/ci.md has valid YAML for GitHub Actions and for GitLab CI', () => {
  expect(examples.map(({ errors, warnings }) => [...errors, ...warnings])).toEqual([[], []]);
  expect(examples.map((document) => Object.keys(document.toJS() as object))).toEqual([
    ['name', 'on', 'permissions', 'jobs'],
    ['evaluation'],
  ]);
});

it.each([0, 1])('example %i of docs/ci.md calls wait with options that it has', async (index) => {
  const call = scripts[index]?.find((text) => text.includes(' wait '));
  const words = call?.replaceAll('\\\n', ' ').trim().split(/\s+/) ?? [];
  const args = words.slice(words.indexOf('wait')).map((word) => word.replaceAll('"', ''));
  let given: unknown;
  const program = await createProgram(
    () =>
      async (...[options]) => {
        given = options;
      },
    'wait',
  );
  await program.parseAsync(args, { from: 'user' });
  expect(given).toMatchObject({
    project: 'checkout-bot',
    experiment: '$EXPERIMENT',
    maxFailureRatio: 0.05,
    junit: 'evaluation.xml',
  });
});

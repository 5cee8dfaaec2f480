import { expect, it } from 'vitest';
import { findChanges } from '../../../src/app/config-changes.ts';
import type { Config } from '../../../src/config/config.ts';

const project = (id: string, options: object = {}) => ({ id, key: { file: '/key' }, ...options });
const config = (projects: readonly object[], options: object = {}) =>
  ({ service: {}, web: {}, log: {}, jitterMs: 0, projects, ...options }) as unknown as Config;

it('findChanges returns added, removed and changed projects', () => {
  const before = config([project('same'), project('gone'), project('moved', { team: 'a' })]);
  const after = config([project('moved', { team: 'b' }), project('same'), project('new')]);

  expect(findChanges(before, after)).toEqual({
    added: ['new'],
    removed: ['gone'],
    changed: ['moved'],
    omitted: undefined,
    sections: [],
  });
});

it('findChanges returns other changed options by their name in the file, without values', () => {
  const before = config([], { service: { proxyUrl: 'http://user:one@proxy' } });
  const after = config([project('p', { key: { env: 'KEY', value: 'secret' } })], {
    service: { proxyUrl: 'http://user:two@proxy' },
    jitterMs: 1,
    missingAfter: 2,
    web: { enableLifecycle: true },
    log: { level: 'debug' },
  });

  const changes = findChanges(before, after);

  expect(changes.sections).toEqual(['service', 'jitter', 'missing_after', 'web', 'log']);
  expect(JSON.stringify(changes)).not.toMatch(/secret|one|two/);
});

it('findChanges returns at most 20 ids of each kind, and the number of the others', () => {
  const many = Array.from({ length: 1000 }, (_, index) => project(`p${index}`));

  const { added, omitted } = findChanges(config([]), config(many));

  expect(added).toEqual(many.slice(0, 20).map(({ id }) => id));
  expect(omitted).toBe(980);
});

it('findChanges reports a changed prompt_url as a change of the section service', () => {
  const after = config([], { promptUrl: 'https://eval.example.com/{prompt_id}' });
  expect(findChanges(config([]), after).sections).toEqual(['service']);
});

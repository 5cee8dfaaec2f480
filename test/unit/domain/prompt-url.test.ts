import { expect, it } from 'vitest';
import { parsePromptUrl } from '../../../src/config/addresses.ts';
import { promptUrl } from '../../../src/domain/prompt-url.ts';
import { HOSTILE } from '../../support/page/scenarios.ts';

function urlOf(text: string, promptId: string, project = 'p'): string | undefined {
  const { value = '' } = parsePromptUrl(text);
  return promptUrl(value, { project, promptId });
}

it.each([
  ['https://e.example/prompts/{prompt_id}', 'https://e.example/prompts/a%2Fb%20%27%24%26'],
  [
    'HTTP://E.example:80/x/../{project}/{prompt_id}/',
    'http://e.example/my%20team/a%2Fb%20%27%24%26/',
  ],
  [
    'https://e.example?id={prompt_id}#/{project}',
    'https://e.example/?id=a%2Fb%20%27%24%26#/my%20team',
  ],
  ['https://e.example/"{prompt_id}"', 'https://e.example/%22a%2Fb%20%27%24%26%22'],
])('the template %s becomes %s', (template, url) => {
  expect(urlOf(template, "a/b '$&", 'my team')).toBe(url);
});

it.each(['{project}', '{prompt_id}', '$1', "$'"])('the text %s in an id is not replaced', (id) => {
  expect(urlOf('https://e.example/{project}/{prompt_id}', id, id)).toBe(
    `https://e.example/${encodeURIComponent(id).replace("'", '%27')}/${encodeURIComponent(id).replace("'", '%27')}`,
  );
});

it.each([
  ['https://e.example/prompts/{prompt_id}', '.'],
  ['https://e.example/prompts/{prompt_id}', '..'],
  ['https://e.example/prompts/.{prompt_id}/edit', '.'],
  ['https://e.example/prompts/{prompt_id}', '\ud800'],
])('the template %s has no URL for the id %j', (template, id) => {
  expect(urlOf(template, id)).toBeUndefined();
});

it.each(HOSTILE)(
  'the id %j changes neither the scheme nor the host, and adds no path segment',
  (id) => {
    for (const project of [id, 'p']) {
      const url = urlOf(
        'https://e.example/prompts/{prompt_id}/?p={project}#{prompt_id}',
        id,
        project,
      );
      const { origin, pathname, searchParams } = new URL(url ?? '');
      expect(url).toMatch(/^[\w.~%:/?=#-]+$/);
      expect(origin).toBe('https://e.example');
      expect(pathname.split('/').map(decodeURIComponent)).toEqual(['', 'prompts', id, '']);
      expect([...searchParams]).toEqual([['p', project]]);
    }
  },
);

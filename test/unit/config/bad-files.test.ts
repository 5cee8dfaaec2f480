import { join } from 'node:path';
import { expect, it } from 'vitest';
import { errorOf, loadText, minimal, places, readCases, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();
/**
 * What a minimal file has more in its service, in its project or at the top, the base_urls that it may have, or what
 * follows a good service; or the whole file.
 */
const CASES = readCases('bad-files.txt', [
  'service',
  'project',
  'top',
  'base_url',
  'rest',
  'file',
  'fault',
]);

function textsOf(each: (typeof CASES)[number]): readonly string[] {
  if (each.file.length > 0) return [`${each.file.join('\n')}\n`];
  const [service, project, top] = [each.service, each.project, each.top].map((lines) =>
    lines.join('\n'),
  );
  const text = minimal({ service, project, top });
  if (each.rest.length > 0)
    return [text.replace(/projects:[^]*/, () => `${each.rest.join('\n')}\n`)];
  if (each.base_url.length === 0) return [text];
  return each.base_url.map((url) => text.replace('https://evaluation.example.com', () => url));
}

it.each(CASES.map((each) => [each.fault.join('\n'), each] as const))(
  'a bad configuration file is rejected with every error: %s',
  async (expected, each) => {
    for (const text of textsOf(each)) {
      const error = await errorOf(loadText(directory, text));
      const file = join(directory, 'evalwatch.yaml');
      const faults = places(error.faults);
      expect(faults.join('\n').replaceAll(directory, '$DIRECTORY')).toBe(expected);
      expect(error.faults.every((fault) => fault.file === file)).toBe(true);
      expect(error.message.split('\n')).toEqual(
        faults.map((fault) => `${file}:${fault.replace(' ', ': ')}`),
      );
      expect(error.message).not.toContain('5ecret');
    }
  },
);

import { join } from 'node:path';
import { expect, it } from 'vitest';
import { errorOf, loadText, minimal, places, readCases, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();
/**
 * What a minimal file has more in its service, in its project or at the top, which base_url it has, or what
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

function write({
  service,
  project,
  top,
  base_url: [url],
  rest,
  file,
}: (typeof CASES)[number]): string {
  if (file.length > 0) return `${file.join('\n')}\n`;
  const text = minimal({
    service: service.join('\n'),
    project: project.join('\n'),
    top: top.join('\n'),
  });
  if (url !== undefined) return text.replace('https://evaluation.example.com', url);
  return rest.length > 0 ? text.replace(/projects:[^]*/, `${rest.join('\n')}\n`) : text;
}

it.each(CASES.map((each) => [each.fault.join('\n'), each] as const))(
  'a bad configuration file is rejected with every error: %s',
  async (expected, each) => {
    const error = await errorOf(loadText(directory, write(each)));
    const file = join(directory, 'evalwatch.yaml');
    expect(places(error.faults).join('\n').replaceAll(directory, '$DIRECTORY')).toBe(expected);
    expect(error.faults.every((fault) => fault.file === file)).toBe(true);
    expect(error.message).toBe(
      places(error.faults)
        .map((fault) => `${file}:${fault.replace(' ', ': ')}`)
        .join('\n'),
    );
    expect(error.message).not.toContain('5ecret');
  },
);

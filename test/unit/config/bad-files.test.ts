import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { errorOf, loadText, minimal, places, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();
const KINDS = ['service', 'project', 'top', 'base_url', 'rest', 'file', 'fault'] as const;
type Case = Record<(typeof KINDS)[number], string[]>;

/**
 * Reads bad-files.txt. Lines of a case say what a minimal file has more in its service, in its project or at
 * the top, which base_url it has, or what follows a good service; or they are the whole file. The expected
 * faults are last.
 */
function readCases(): readonly Case[] {
  const cases: Case[] = [];
  const text = readFileSync(join(import.meta.dirname, 'bad-files.txt'), 'utf8');
  for (const line of text.trimEnd().split('\n')) {
    const kind = KINDS.find((name) => line.startsWith(`${name} `));
    if (kind === undefined) throw new Error(`no kind of line: ${line}`);
    let last = cases.at(-1);
    if (last === undefined || (kind !== 'fault' && last.fault.length > 0)) {
      last = { service: [], project: [], top: [], base_url: [], rest: [], file: [], fault: [] };
      cases.push(last);
    }
    last[kind].push(line.slice(kind.length + 1));
  }
  return cases;
}

function write({ service, project, top, base_url: [url], rest, file }: Case): string {
  if (file.length > 0) return `${file.join('\n')}\n`;
  const text = minimal({
    service: service.join('\n'),
    project: project.join('\n'),
    top: top.join('\n'),
  });
  if (url !== undefined) return text.replace('https://evaluation.example.com', url);
  return rest.length > 0 ? text.replace(/projects:[^]*/, `${rest.join('\n')}\n`) : text;
}

it.each(readCases().map((each) => [each.fault.join('\n'), each] as const))(
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

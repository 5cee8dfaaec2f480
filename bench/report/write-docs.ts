import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatted } from '../../scripts/generated-file.ts';
import { ROOT } from '../node-process.ts';
import type { Report } from '../result.ts';
import { documentOf, plotByProjects, plotByPrompts } from './document.ts';

/** Figures from before all work on performance; the file is never rewritten. */
const BEFORE = 'docs/performance/before.json';

/** Writes `docs/performance.md`, its plots and its figures. */
export async function writeDocs(report: Report): Promise<void> {
  const before = JSON.parse(await readFile(join(ROOT, BEFORE), 'utf8')) as Report;
  const files = {
    'docs/performance.md': await documentOf(report, before),
    'docs/performance/now.json': JSON.stringify(report),
  };
  await mkdir(join(ROOT, 'docs/performance'), { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    await writeFile(join(ROOT, path), await formatted(path, text));
  }
  await writeFile(join(ROOT, 'docs/performance/by-prompts.svg'), plotByPrompts(report));
  await writeFile(join(ROOT, 'docs/performance/by-projects.svg'), plotByProjects(report));
}

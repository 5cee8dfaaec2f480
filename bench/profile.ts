import type { Profiler } from 'node:inspector';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const LINES = 20;
/** Frames of waiting and of the profiler itself. */
const NOT_WORK = ['(idle)', 'post node:inspector:115'];
const ROOT = join(import.meta.dirname, '..');

/** Prints the functions with the most self time. */
export function printProfiles(profiles: readonly Profiler.Profile[]): void {
  const selfUs = new Map<string, number>();
  for (const profile of profiles) {
    const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
    for (const [index, id] of (profile.samples ?? []).entries()) {
      const name = names.get(id) ?? '?';
      selfUs.set(name, (selfUs.get(name) ?? 0) + (profile.timeDeltas?.[index] ?? 0));
    }
  }
  for (const name of NOT_WORK) selfUs.delete(name);
  const total = selfUs.values().reduce((sum, us) => sum + us, 0);
  const top = [...selfUs].toSorted(([, one], [, other]) => other - one).slice(0, LINES);
  console.log('  self time');
  for (const [name, us] of top) {
    console.log(`  ${((100 * us) / total).toFixed(1).padStart(6)} %  ${name}`);
  }
}

function nameOf({ functionName, url, lineNumber }: Profiler.Profile['nodes'][number]['callFrame']) {
  // The native functions of SQLite's driver have no name.
  if (url === '') return functionName || '(native addon)';
  const file = url.startsWith('file:') ? relative(ROOT, fileURLToPath(url)) : url;
  return `${functionName || '(anonymous)'} ${file}:${lineNumber + 1}`;
}

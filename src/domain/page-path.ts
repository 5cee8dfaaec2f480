// Paths of pages below the address of evalwatch.

export function projectPath(project: string): string {
  return `projects/${encodeURIComponent(project.toWellFormed())}`;
}

/** Returns undefined for a name that a URL cannot end with, as it would lead elsewhere. */
export function experimentPath(project: string, experiment: string): string | undefined {
  if (['', '.', '..'].includes(experiment)) return undefined;
  return `${projectPath(project)}/experiments/${encodeURIComponent(experiment.toWellFormed())}`;
}

// Paths of pages below the address of evalwatch.

export function projectPath(project: string): string {
  return `projects/${encodeURIComponent(project.toWellFormed())}`;
}

// Undefined for a name that a URL cannot end with, as it would lead elsewhere.

export function experimentPath(project: string, experiment: string): string | undefined {
  return pathBelow(project, 'experiments', experiment);
}

export function promptPath(project: string, promptId: string): string | undefined {
  return pathBelow(project, 'prompts', promptId);
}

function pathBelow(project: string, what: string, name: string): string | undefined {
  if (['', '.', '..'].includes(name)) return undefined;
  return `${projectPath(project)}/${what}/${encodeURIComponent(name.toWellFormed())}`;
}

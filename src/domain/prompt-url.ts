const PLACEHOLDER = /\{(prompt_id|project)\}/g;

/** Placeholders of `service.prompt_url`. */
export const PROMPT_URL_PLACEHOLDERS = ['prompt_id', 'project'] as const;

/** Returns the template with the same text in the place of each placeholder. */
export function replacePlaceholders(template: string, text: string): string {
  return template.replaceAll(PLACEHOLDER, () => text);
}

/**
 * Returns the address of a prompt at the service's own pages (docs/specification.md#links).
 * @param template a valid `service.prompt_url`
 * @returns undefined for ids that an address cannot carry: invalid Unicode, and `.` and `..` as a segment of a path
 */
export function promptUrl(
  template: string,
  { project, promptId }: { readonly project: string; readonly promptId: string },
): string | undefined {
  if (!project.isWellFormed() || !promptId.isWellFormed()) return undefined;
  const values = new Map([
    ['prompt_id', encode(promptId)],
    ['project', encode(project)],
  ]);
  const url = template.replaceAll(PLACEHOLDER, (_, name: string) => values.get(name) ?? '');
  // The template is as the URL parser writes it, so the parser changes the result only where an id adds a dot segment.
  return URL.parse(url)?.href === url ? url : undefined;
}

/** Percent-encodes all but the unreserved characters, unlike encodeURIComponent. */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

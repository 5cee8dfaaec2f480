import type { Tree } from './document/tree.ts';

/** Two options that name the source of one secret: a file, and an environment variable. */
export type SecretOptions = readonly [file: string, variable: string];

export const API_KEY_OPTIONS = ['api_key_file', 'api_key_env'] as const;
export const POSTGRES_URL_OPTIONS = ['postgres_url_file', 'postgres_url_env'] as const;
export const HEARTBEAT_URL_OPTIONS = ['url_file', 'url_env'] as const;

/** Returns the first of these options that a section has; undefined if it has none of them. */
export function givenOption(section: Tree, options: SecretOptions): string | undefined {
  return options.find((name) => section[name] !== undefined);
}

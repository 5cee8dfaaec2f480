import { givenOption, POSTGRES_URL_OPTIONS } from './secret-options.ts';
import { type Env, readVariable, resolveFromUser } from './environment.ts';
import { isMapping, type Tree } from './document/tree.ts';

/** Environment variables that replace options of the file (docs/specification.md#environment-overrides). */
export const OVERRIDES = [
  { name: 'EVALWATCH_SERVICE_BASE_URL', section: 'service', key: 'base_url' },
  { name: 'EVALWATCH_STORE_PATH', section: 'store', key: 'path' },
  { name: 'EVALWATCH_WEB_LISTEN', section: 'web', key: 'listen' },
  { name: 'EVALWATCH_LOG_LEVEL', section: 'log', key: 'level' },
] as const;

/**
 * Replaces options of the file by the values of environment variables. The replaced values are not checked.
 * @returns the new tree, and the name of the variable for each replaced `section.key`
 */
export function applyOverrides(
  tree: Tree,
  env: Env,
): { readonly tree: Tree; readonly variables: ReadonlyMap<string, string> } {
  const variables = new Map<string, string>();
  const result: Record<string, unknown> = { __proto__: null, ...tree };
  for (const { name, section, key } of OVERRIDES) {
    const given = readVariable(env, name);
    const before = result[section];
    if (given === undefined || !isMapping(before)) continue;
    // The image sets EVALWATCH_STORE_PATH for every configuration, also for one with PostgreSQL.
    if (section === 'store' && givenOption(before, POSTGRES_URL_OPTIONS)) continue;
    const value = section === 'store' ? resolveFromUser(given, env) : given;
    result[section] = { __proto__: null, ...before, [key]: value };
    variables.set(`${section}.${key}`, name);
  }
  return { tree: result, variables };
}

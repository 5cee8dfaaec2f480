import { isPlainHttp } from './values/address.ts';
import { type Env, readVariable, VARIABLE_NAME } from './environment.ts';
import { MAX_TEXT_LENGTH } from './values/option-types.ts';
import { type Finding, optionName } from './finding.ts';
import { quoteIfSafe, quoteId, describeUnsetVariable } from './redaction.ts';
import {
  API_KEY_OPTIONS,
  givenOption,
  HEARTBEAT_URL_OPTIONS,
  POSTGRES_URL_OPTIONS,
  type SecretOptions,
} from './secret-options.ts';
import { isMapping, mappingAt, type Tree } from './document/tree.ts';
import type { Path } from './document/yaml-document.ts';

/** Inputs of the rules besides the file. */
export interface RuleOptions {
  readonly env: Env;
  /** Whether the environment variables named for API keys and for the database address must be set and not empty. */
  readonly requireSecrets: boolean;
  /** Returns what is wrong with a cron expression, as `must …`; undefined if it is valid. */
  readonly validateSchedule: (expression: string) => string | undefined;
}

interface RulesContext extends RuleOptions {
  /** Returns the line of an option in the file. */
  readonly lineOf: (path: Path) => number;
}

/**
 * Checks the rules that the schema cannot express: rules for several options together, or for more than the file. They
 * read the raw tree, so that they apply also when the schema rejects the file, and skip values of wrong types.
 */
export function checkRules(tree: Tree, context: RulesContext): readonly Finding[] {
  return [
    ...checkPlainHttp(mappingAt(tree, 'service')),
    ...checkSchedules(tree, context),
    ...checkProjectIds(tree, context),
    ...checkKeySources(tree, context),
    ...checkStore(mappingAt(tree, 'store'), context),
    ...checkHeartbeat(mappingAt(tree, 'heartbeat'), context),
  ];
}

function checkPlainHttp(service: Tree): readonly Finding[] {
  const { base_url: address, allow_http: allowed, proxy_url: proxy } = service;
  const plain = typeof address === 'string' && isPlainHttp(address);
  if (plain === false || allowed === true) return [];
  const needed = 'must start with https://, unless allow_http is true';
  if (plain === 'remote') {
    const message = `${needed}: anyone on the network could read the API key`;
    return [{ path: ['service', 'base_url'], message }];
  }
  if (typeof proxy !== 'string') return [];
  return [
    { path: ['service', 'base_url'], message: `${needed}: the proxy could read the API key` },
  ];
}

function checkSchedules(tree: Tree, { validateSchedule }: RulesContext): readonly Finding[] {
  const messages = new Map<string, string | undefined>();
  const validate = (schedule: string): string | undefined => {
    if (!messages.has(schedule)) messages.set(schedule, validateSchedule(schedule));
    return messages.get(schedule);
  };
  const places = [
    { path: ['schedule'], schedule: tree['schedule'] },
    ...projectsOf(tree).map(({ index, project }) => ({
      path: ['projects', index, 'schedule'],
      schedule: project['schedule'],
    })),
  ];
  return places.flatMap(({ path, schedule }) => {
    if (typeof schedule !== 'string' || schedule === '') return [];
    if (schedule.length > MAX_TEXT_LENGTH) return [];
    const message = validate(schedule);
    return message === undefined ? [] : [{ path, message: `${quoteIfSafe(schedule)}${message}` }];
  });
}

function checkProjectIds(tree: Tree, { lineOf }: RulesContext): readonly Finding[] {
  const first = new Map<string, number>();
  const findings: Finding[] = [];
  for (const { index, project } of projectsOf(tree)) {
    const id = project['id'];
    if (typeof id !== 'string') continue;
    const before = first.get(id);
    if (before === undefined) {
      first.set(id, index);
      continue;
    }
    const line = lineOf(['projects', before, 'id']);
    findings.push({
      path: ['projects', index, 'id'],
      message: `${quoteId(id)} duplicates the id on line ${line}`,
    });
  }
  return findings;
}

function checkKeySources(tree: Tree, context: RulesContext): readonly Finding[] {
  const service = mappingAt(tree, 'service');
  const projects = projectsOf(tree);
  const inPlaces = [
    ...checkKeySource(['service'], service, context),
    ...projects.flatMap(({ index, project }) =>
      checkKeySource(['projects', index], project, context),
    ),
  ];
  if (!isMapping(tree['service']) || givenOption(service, API_KEY_OPTIONS)) return inPlaces;
  const without = projects.filter(({ project }) => !givenOption(project, API_KEY_OPTIONS));
  if (projects.length === without.length) {
    return [...inPlaces, { path: ['service'], message: `needs ${API_KEY_OPTIONS.join(' or ')}` }];
  }
  return [
    ...inPlaces,
    ...without.map(({ index, project: { id } }) => ({
      path: ['projects', index],
      message: `${typeof id === 'string' ? `${quoteId(id)} ` : ''}needs ${API_KEY_OPTIONS.join(' or ')}, because service has neither`,
    })),
  ];
}

function checkKeySource(path: Path, place: Tree, context: RulesContext): readonly Finding[] {
  return checkSecretSource(path, place, API_KEY_OPTIONS, context);
}

function checkStore(store: Tree, context: RulesContext): readonly Finding[] {
  const findings = [...checkSecretSource(['store'], store, POSTGRES_URL_OPTIONS, context)];
  const postgres = givenOption(store, POSTGRES_URL_OPTIONS);
  if (postgres === undefined && store['lease'] !== undefined) {
    const message = `applies to PostgreSQL only: add ${POSTGRES_URL_OPTIONS.join(' or ')}, or remove it`;
    findings.push({ path: ['store', 'lease'], message });
  }
  if (postgres !== undefined && store['path'] !== undefined) {
    const message = `cannot be combined with ${postgres}: remove one of them`;
    findings.push({ path: ['store', 'path'], message });
  }
  return findings;
}

function checkHeartbeat(heartbeat: Tree, context: RulesContext): readonly Finding[] {
  const findings = [...checkSecretSource(['heartbeat'], heartbeat, HEARTBEAT_URL_OPTIONS, context)];
  const other = givenOption(heartbeat, HEARTBEAT_URL_OPTIONS);
  if (other !== undefined && heartbeat['url'] !== undefined) {
    const message = `cannot be combined with ${other}: remove one of them`;
    findings.push({ path: ['heartbeat', 'url'], message });
  }
  return findings;
}

function checkSecretSource(
  path: Path,
  place: Tree,
  [fileOption, variableOption]: SecretOptions,
  { env, requireSecrets }: RulesContext,
): readonly Finding[] {
  const variable = place[variableOption];
  const option = [...path, variableOption];
  if (place[fileOption] !== undefined && variable !== undefined) {
    return [{ path: option, message: `cannot be combined with ${fileOption}: remove one of them` }];
  }
  if (!requireSecrets || typeof variable !== 'string') return [];
  if (variable.length > MAX_TEXT_LENGTH || !VARIABLE_NAME.test(variable)) return [];
  if (readVariable(env, variable) !== undefined) return [];
  const message = describeUnsetVariable(variable, optionName(option));
  return [{ path: option, message, isSentence: true }];
}

function projectsOf(tree: Tree): readonly { readonly index: number; readonly project: Tree }[] {
  const projects: unknown = tree['projects'];
  if (!Array.isArray(projects)) return [];
  return projects.flatMap((project: unknown, index) =>
    isMapping(project) ? [{ index, project }] : [],
  );
}

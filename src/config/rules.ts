import { isPlainHttp } from './addresses.ts';
import type { Finding } from './faults.ts';
import { type Path, type Tree, isMapping, mappingAt } from './yaml.ts';
import { type Env, readVariable, VARIABLE_NAME } from './environment.ts';
import { MAX_TEXT_LENGTH } from './options.ts';
import { quoteId } from '../domain/suggest.ts';
import { validateSchedule } from '../schedule/cron.ts';

/** Inputs of the rules besides the file. */
export interface RuleOptions {
  readonly env: Env;
  /** Whether the environment variables named for API keys and for the database address must be set and not empty. */
  readonly requireSecrets: boolean;
}

interface RulesContext extends RuleOptions {
  /** Returns the line of an option in the file. */
  readonly lineOf: (path: Path) => number;
}

/** The options that name the source of one secret: a file, or another source. */
type SourceOptions = readonly [file: string, other: string];

const API_KEY = ['api_key_file', 'api_key_env'] as const;
const POSTGRES_URL = ['postgres_url_file', 'postgres_url_env'] as const;

function has(section: Tree, options: SourceOptions): boolean {
  return options.some((name) => section[name] !== undefined);
}

/** Whether the section `store` names a PostgreSQL database. */
export function isPostgres(store: Tree): boolean {
  return has(store, POSTGRES_URL);
}

/**
 * Checks the rules that the schema cannot express: rules for several options together, or for more than the file. They
 * read the raw tree, so that they apply also when the schema rejects the file, and skip values of wrong types.
 */
export function checkRules(tree: Tree, context: RulesContext): readonly Finding[] {
  const projects = projectsOf(tree);
  return [
    ...checkPlainHttp(mappingAt(tree, 'service')),
    ...checkSchedules([{ path: [], place: tree }, ...projects]),
    ...checkProjectIds(projects, context),
    ...checkKeys(tree, projects, context),
    ...checkStore(mappingAt(tree, 'store'), context),
    ...checkSource({ path: ['heartbeat'], place: mappingAt(tree, 'heartbeat') }, [
      'url_file',
      'url',
    ]),
  ];
}

/** The top level, a section or a project, and its path. */
interface Place {
  readonly path: Path;
  readonly place: Tree;
}

function projectsOf(tree: Tree): readonly Place[] {
  const projects: unknown = tree['projects'];
  if (!Array.isArray(projects)) return [];
  return projects.flatMap((place: unknown, index) =>
    isMapping(place) ? [{ path: ['projects', index], place }] : [],
  );
}

function checkPlainHttp(service: Tree): readonly Finding[] {
  const { base_url: address, allow_http: allowed, proxy_url: proxy } = service;
  const plain = typeof address === 'string' && isPlainHttp(address);
  if (plain === false || allowed === true) return [];
  if (plain === 'loopback' && typeof proxy !== 'string') return [];
  const who = plain === 'remote' ? 'anyone on the network' : 'the proxy';
  const message = `must start with https://, unless allow_http is true: ${who} could read the API key`;
  return [{ path: ['service', 'base_url'], message }];
}

function checkSchedules(places: readonly Place[]): readonly Finding[] {
  return places.flatMap(({ path, place: { schedule } }) => {
    if (typeof schedule !== 'string' || schedule === '' || schedule.length > MAX_TEXT_LENGTH) {
      return [];
    }
    const fault = validateSchedule(schedule);
    if (fault === undefined) return [];
    return [{ path: [...path, 'schedule'], message: `${quoteId(schedule)} ${fault}` }];
  });
}

function checkProjectIds(projects: readonly Place[], { lineOf }: RulesContext): readonly Finding[] {
  const first = new Map<string, Path>();
  return projects.flatMap(({ path, place: { id } }) => {
    if (typeof id !== 'string') return [];
    const before = first.get(id);
    if (before === undefined) {
      first.set(id, path);
      return [];
    }
    const line = lineOf([...before, 'id']);
    const message = `${quoteId(id)} duplicates the id on line ${line}`;
    return [{ path: [...path, 'id'], message }];
  });
}

function checkKeys(
  tree: Tree,
  projects: readonly Place[],
  context: RulesContext,
): readonly Finding[] {
  const service = { path: ['service'], place: mappingAt(tree, 'service') };
  const findings = [service, ...projects].flatMap((place) => checkSource(place, API_KEY, context));
  if (!isMapping(tree['service']) || has(service.place, API_KEY)) return findings;
  const needs = `needs ${API_KEY.join(' or ')}`;
  const without = projects.filter(({ place }) => !has(place, API_KEY));
  if (projects.length === without.length) {
    return [...findings, { path: service.path, message: needs }];
  }
  return [
    ...findings,
    ...without.map(({ path, place: { id } }) => {
      const who = typeof id === 'string' ? `${quoteId(id)} ` : '';
      return { path, message: `${who}${needs}, because service has neither` };
    }),
  ];
}

function checkStore(store: Tree, context: RulesContext): readonly Finding[] {
  const findings = [...checkSource({ path: ['store'], place: store }, POSTGRES_URL, context)];
  if (!isPostgres(store) && store['lease'] !== undefined) {
    const message = `applies to PostgreSQL only: add ${POSTGRES_URL.join(' or ')}, or remove it`;
    findings.push({ path: ['store', 'lease'], message });
  }
  if (isPostgres(store) && store['path'] !== undefined) {
    const name = POSTGRES_URL.find((option) => store[option] !== undefined);
    const message = `cannot be combined with ${name}: remove one of them`;
    findings.push({ path: ['store', 'path'], message });
  }
  return findings;
}

/** @param context undefined if the other source is no variable */
function checkSource(
  { path, place }: Place,
  [file, other]: SourceOptions,
  context?: RulesContext,
): readonly Finding[] {
  const value = place[other];
  if (place[file] !== undefined && value !== undefined) {
    const message = `cannot be combined with ${file}: remove one of them`;
    return [{ path: [...path, other], message }];
  }
  if (!context?.requireSecrets || typeof value !== 'string') return [];
  if (value.length > MAX_TEXT_LENGTH || !VARIABLE_NAME.test(value)) return [];
  if (readVariable(context.env, value) !== undefined) return [];
  const message = 'names an environment variable that is not set or is empty';
  return [{ path: [...path, other], message }];
}

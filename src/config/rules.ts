import { isPlainHttp } from './addresses.ts';
import type { Finding } from './faults.ts';
import { type Path, type Position, type Tree, isMapping, mappingAt } from './yaml.ts';
import { type Env, readVariable, VARIABLE_NAME } from './environment.ts';
import { MAX_TEXT_LENGTH } from './options.ts';
import { type Receiver, RECEIVER_TYPES } from '../domain/receiver.ts';
import { closest, didYouMean, quoteId } from '../domain/suggest.ts';
import { validateSchedule } from '../schedule/cron.ts';

/** Inputs of the rules besides the file. */
export interface RuleOptions {
  readonly env: Env;
  /** Whether the environment variables named for API keys and for the database address must be set and not empty. */
  readonly requireSecrets: boolean;
}

interface RulesContext extends RuleOptions {
  /** Returns where an option is. */
  readonly locate: (path: Path) => Position;
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
  const projects = placesOf(tree, 'projects');
  return [
    ...checkPlainHttp(mappingAt(tree, 'service')),
    ...checkSchedules({ path: [], place: tree }, projects),
    ...checkUnique(projects, 'id', context),
    ...checkKeys(tree, projects, context),
    ...checkStore(mappingAt(tree, 'store'), context),
    ...checkSource({ path: ['heartbeat'], place: mappingAt(tree, 'heartbeat') }, [
      'url_file',
      'url',
    ]),
    ...checkReceivers(placesOf(tree, 'notify'), projects, context),
  ];
}

/** The top level, a section, a project or a receiver, and its path. */
interface Place {
  readonly path: Path;
  readonly place: Tree;
}

/** @param path that of the tree */
function placesOf(
  tree: Tree,
  section: 'projects' | 'notify' | 'maintenance',
  path: Path = [],
): readonly Place[] {
  const list: unknown = tree[section];
  if (!Array.isArray(list)) return [];
  return list.flatMap((place: unknown, index) =>
    isMapping(place) ? [{ path: [...path, section, index], place }] : [],
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

function checkSchedules(root: Place, projects: readonly Place[]): readonly Finding[] {
  const places = [root, ...projects];
  const maintenance = places.flatMap((each) => placesOf(each.place, 'maintenance', each.path));
  const checked = [...places, ...maintenance].flatMap(({ path, place }) =>
    ['schedule', 'idle_schedule', 'cron'].map((option) => ({
      path: [...path, option],
      value: place[option],
    })),
  );
  return checked.flatMap(({ path, value }) => {
    if (typeof value !== 'string' || value === '' || value.length > MAX_TEXT_LENGTH) return [];
    const fault = validateSchedule(value);
    return fault === undefined ? [] : [{ path, message: `${quoteId(value)} ${fault}` }];
  });
}

function checkUnique(
  places: readonly Place[],
  option: 'id' | 'name',
  { locate }: RulesContext,
): readonly Finding[] {
  const first = new Map<string, Path>();
  return places.flatMap(({ path, place: { [option]: value } }) => {
    if (typeof value !== 'string') return [];
    const before = first.get(value);
    if (before === undefined) {
      first.set(value, path);
      return [];
    }
    const { file, line } = locate([...before, option]);
    const where = locate(path).file === file ? '' : ` of ${file}`;
    const message = `${quoteId(value)} duplicates the ${option} on line ${line}${where}`;
    return [{ path: [...path, option], message }];
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
  if (place[file] !== undefined && place[other] !== undefined) {
    const message = `cannot be combined with ${file}: remove one of them`;
    return [{ path: [...path, other], message }];
  }
  return context === undefined ? [] : checkVariable({ path, place }, other, context);
}

function checkVariable(
  { path, place }: Place,
  option: string,
  { requireSecrets, env }: RulesContext,
): readonly Finding[] {
  const value = place[option];
  if (!requireSecrets || typeof value !== 'string') return [];
  if (value.length > MAX_TEXT_LENGTH || !VARIABLE_NAME.test(value)) return [];
  if (readVariable(env, value) !== undefined) return [];
  const message = 'names an environment variable that is not set or is empty';
  return [{ path: [...path, option], message }];
}

/** Groups of options that name the same, of which a receiver has at most one. */
interface ReceiverOptions {
  readonly needs: readonly (readonly string[])[];
  readonly may: readonly (readonly string[])[];
}
const SECRET_URL = ['url_file', 'url_env'];
/** The options of a receiver that only some types have. */
const RECEIVER_OPTIONS: Readonly<Record<Receiver['type'], ReceiverOptions>> = {
  webhook: { needs: [['url', ...SECRET_URL]], may: [['secret_file', 'secret_env']] },
  slack: { needs: [SECRET_URL], may: [] },
  teams: { needs: [SECRET_URL], may: [] },
  email: { needs: [['smtp_url_file', 'smtp_url_env'], ['from'], ['to']], may: [] },
};
/** All options of one type that others do not have. */
const optionsOf = ({ needs, may }: ReceiverOptions) => [...needs, ...may].flat();
const OPTIONS_OF_SOME = new Set(Object.values(RECEIVER_OPTIONS).flatMap(optionsOf));

function checkReceivers(
  receivers: readonly Place[],
  projects: readonly Place[],
  context: RulesContext,
): readonly Finding[] {
  if (receivers.length === 0) return [];
  const valuesOf = (option: 'id' | 'team') =>
    new Set(projects.map(({ place }) => place[option]).filter((each) => typeof each === 'string'));
  const [ids, teams] = [valuesOf('id'), valuesOf('team')];
  return [
    ...checkUnique(receivers, 'name', context),
    ...receivers.flatMap((receiver) => checkReceiver(receiver, context)),
    // Without a project, that is the fault.
    ...(projects.length === 0
      ? []
      : [
          ...checkNames(receivers, ['teams', 'is the team of no project'], teams),
          ...checkNames(receivers, ['projects', 'is not among the projects'], ids),
        ]),
  ];
}

function checkReceiver({ path, place }: Place, context: RulesContext): readonly Finding[] {
  const type = RECEIVER_TYPES.find((each) => each === place['type']);
  if (type === undefined) return [];
  const { needs, may } = RECEIVER_OPTIONS[type];
  const own = optionsOf(RECEIVER_OPTIONS[type]);
  const isGiven = (option: string) => place[option] !== undefined;
  const isClear = type !== 'webhook' && type !== 'email' && isGiven('url');
  const who = typeof place['name'] === 'string' ? `${quoteId(place['name'])} ` : '';
  const findings: Finding[] = [];
  for (const option of OPTIONS_OF_SOME) {
    if (!isGiven(option) || own.includes(option)) continue;
    const message =
      isClear && option === 'url'
        ? 'is a secret: put it into a file of its own, and name that with url_file'
        : `does not belong to a receiver of type ${type}: remove it`;
    findings.push({ path: [...path, option], message });
  }
  for (const group of [...needs, ...may]) {
    const [first, ...others] = group.filter(isGiven);
    if (first === undefined && needs.includes(group) && !isClear) {
      findings.push({ path, message: `${who}needs the option ${group.join(' or ')}` });
    }
    const message = `cannot be combined with ${first}: remove one of them`;
    findings.push(...others.map((option) => ({ path: [...path, option], message })));
  }
  const variables = own.filter((option) => option.endsWith('_env'));
  return [
    ...findings,
    ...variables.flatMap((option) => checkVariable({ path, place }, option, context)),
  ];
}

/** How many unknown names are compared with how many known ones: there can be 100,000 projects. */
const MAX_UNKNOWN = 10;
const MAX_KNOWN = 3000;

/** Finds the teams or projects that a receiver names and no project has. */
function checkNames(
  receivers: readonly Place[],
  [option, words]: readonly [option: 'teams' | 'projects', words: string],
  known: ReadonlySet<string>,
): readonly Finding[] {
  const unknown = receivers.flatMap(({ path, place: { [option]: names } }) =>
    Array.isArray(names)
      ? names.flatMap((name: unknown, index) =>
          typeof name === 'string' && name !== '' && !known.has(name)
            ? [{ path: [...path, option, index], name }]
            : [],
        )
      : [],
  );
  const candidates = unknown.length === 0 ? [] : [...known].slice(0, MAX_KNOWN);
  return unknown.map(({ path, name }, index) => {
    const near = index < MAX_UNKNOWN ? closest(name, candidates) : undefined;
    return { path, message: `${quoteId(name)} ${words}${didYouMean(near)}` };
  });
}

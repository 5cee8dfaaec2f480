import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { Expectations } from '../domain/limits.ts';
import type { SecretSource } from '../domain/options.ts';
import type { Receiver } from '../domain/receiver.ts';
import { readTextFile } from '../files/read-file.ts';
import type { Pauses } from '../schedule/pause.ts';
import type { Config, HeartbeatUrl, Source } from './config.ts';
import { throwFaults } from './faults.ts';
import { addProjectsFiles, findFiles } from './projects-files.ts';
import { type Tree, isMapping, readYamlFile } from './yaml.ts';
import { type Env, readVariable, resolveFromUser } from './environment.ts';
import { checkRules, isPostgres, type RuleOptions } from './rules.ts';
import { type ConfigFile, fileSchema, OPTIONS } from './schema.ts';
import { couldBeKey, MAX_CERTIFICATES_BYTES, readPemFile } from './secrets.ts';

export interface LoadOptions extends RuleOptions {
  /** Relative paths in the file start from its directory. */
  readonly file: string;
}

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const ADVICE = '; name one with --config or EVALWATCH_CONFIG, or write one with `evalwatch init`';

/**
 * Reads and checks the configuration: the file, and the variables that override it (docs/specification.md#configuration-file).
 * Sends no request and reads no key file.
 * @throws {ConfigError} with all errors at once; an unreadable file or bad YAML is the only error
 */
export async function loadConfig(options: LoadOptions): Promise<Config> {
  const { file, env } = options;
  const yaml = await readYamlFile(file, MAX_FILE_BYTES, ADVICE);
  const whole = await addProjectsFiles(yaml, MAX_FILE_BYTES);
  const { tree, variables } = applyOverrides(whole.tree, env);
  // With 100,000 projects each step takes up to half a second: polls and beats run between them.
  await setImmediate();
  const parsed = fileSchema.safeParse(tree);
  await setImmediate();
  const ca = readPemFile(tree, ['service', 'ca_file'], dirname(file), 'certificates');
  const findings = [...checkRules(tree, { ...options, locate: whole.locate }), ...ca.findings];
  throwFaults(whole, OPTIONS, parsed.error?.issues ?? [], findings, variables);
  if (!parsed.success) throw parsed.error;
  await setImmediate();
  const sources = [toSource(resolve(file), yaml.text)];
  if (ca.path !== undefined && ca.text !== undefined) sources.push(toSource(ca.path, ca.text));
  for (const { file: path, text, tree: read } of whole.files) {
    const projects = read.map((project) => (isMapping(project) ? String(project['id']) : ''));
    sources.push({ ...toSource(path, text), projects });
  }
  return toConfig(parsed.data, { file, env, authorities: ca.text, sources, fileOf: whole.fileOf });
}

/** Environment variables that replace options of the file (docs/specification.md#environment-overrides). */
export const OVERRIDES = [
  { name: 'EVALWATCH_SERVICE_BASE_URL', section: 'service', key: 'base_url' },
  { name: 'EVALWATCH_STORE_PATH', section: 'store', key: 'path' },
  { name: 'EVALWATCH_WEB_LISTEN', section: 'web', key: 'listen' },
  { name: 'EVALWATCH_LOG_LEVEL', section: 'log', key: 'level' },
] as const;

/**
 * Replaces options of the file by the values of environment variables, which are checked instead. Each section that is absent or
 * empty becomes an empty mapping.
 * @returns the new tree, and the name of the variable for each replaced `section.key`
 */
function applyOverrides(file: Tree, env: Env) {
  const tree: Record<string, unknown> = { __proto__: null, ...file };
  for (const section of ['service', 'expect', 'store', 'web', 'metrics', 'log', 'heartbeat']) {
    tree[section] ??= {};
  }
  tree['notify'] ??= [];
  const variables = new Map<string, string>();
  for (const { name, section, key } of OVERRIDES) {
    const given = readVariable(env, name);
    const before = tree[section];
    if (given === undefined || !isMapping(before)) continue;
    // The image sets EVALWATCH_STORE_PATH for every configuration, also for one with PostgreSQL.
    if (section === 'store' && isPostgres(before)) continue;
    const value = section === 'store' ? resolveFromUser(given, env) : given;
    tree[section] = { __proto__: null, ...before, [key]: value };
    variables.set(`${section}.${key}`, name);
  }
  return { tree, variables };
}

interface Context {
  readonly file: string;
  readonly env: Env;
  /** Content of `ca_file`, if there is one. */
  readonly authorities: string | undefined;
  readonly sources: readonly Source[];
  /** Returns the file of a project. */
  readonly fileOf: (project: number) => string;
}

/** Converts the content of a valid file to the configuration. Relative paths start from the directory of their file. */
function toConfig(content: ConfigFile, context: Context): Config {
  const { file, env, authorities, sources, fileOf } = context;
  const { service, store, web, heartbeat } = content;
  const directory = dirname(file);
  const secret = (path: string | undefined, variable = '', from = directory): SecretSource =>
    path === undefined
      ? { env: variable, value: readVariable(env, variable) }
      : { file: resolve(from, path) };
  /** Its path is not shown if it could be the secret itself. */
  const keySource = (
    path: string | undefined,
    variable: string | undefined,
    from = directory,
  ): SecretSource =>
    path !== undefined && couldBeKey(path)
      ? { file: resolve(from, path), couldBeKey: true }
      : secret(path, variable, from);
  const heartbeatUrl = (): HeartbeatUrl | undefined => {
    if (heartbeat.url !== undefined) return { url: heartbeat.url };
    const { url_file: path } = heartbeat;
    return path === undefined ? undefined : { file: resolve(directory, path) };
  };
  // Shared by all projects without their own: there can be 100,000.
  const serviceKey = keySource(service.api_key_file, service.api_key_env);
  const expectations = toExpectations(content.expect, {});
  return {
    file: resolve(file),
    sources,
    service: {
      baseUrl: service.base_url,
      timeoutMs: service.timeout,
      retries: service.retries,
      maxConcurrency: service.max_concurrency,
      maxRequestsPerSecond: service.max_requests_per_second,
      maxResponseBytes: service.max_response_size,
      maxItems: service.max_items,
      authorities,
      proxyUrl: service.proxy_url,
    },
    promptUrl: service.prompt_url,
    jitterMs: content.jitter,
    missingAfter: content.missing_after,
    projectsFiles: content.projects_files.map((pattern) => resolve(directory, pattern)),
    projects: content.projects.map((project, index) => {
      const { api_key_file: path, api_key_env: variable } = project;
      return {
        id: project.id,
        schedule: project.schedule ?? content.schedule,
        idleSchedule: project.idle_schedule ?? content.idle_schedule,
        timezone: project.timezone ?? content.timezone,
        key:
          path === undefined && variable === undefined
            ? serviceKey
            : keySource(path, variable, dirname(fileOf(index))),
        datasets: project.datasets,
        pauses: toPauses(content, project),
        team: project.team ?? '',
        expect: project.expect ? toExpectations(content.expect, project.expect) : expectations,
      };
    }),
    store: {
      ...(isPostgres(store)
        ? {
            postgresUrl: secret(store.postgres_url_file, store.postgres_url_env),
            leaseMs: store.lease,
          }
        : { path: resolve(directory, store.path) }),
      retentionMs: store.retention,
    },
    web: {
      ...web.listen,
      allowedHosts: [...new Set([...web.allowed_hosts, ...hostOf(web.external_url)])],
      externalUrl: web.external_url,
      enableLifecycle: web.enable_lifecycle,
      configFile: web.config_file === undefined ? undefined : resolve(directory, web.config_file),
    },
    metrics: content.metrics,
    log: { level: content.log.level },
    heartbeat: heartbeatUrl(),
    notify: content.notify.map((receiver) => toReceiver(receiver, keySource)),
  };
}

/** Returns the pauses of a project: its own, and those of all. */
function toPauses(
  content: Pick<ConfigFile, 'timezone' | 'maintenance'>,
  { paused, maintenance, timezone = content.timezone }: ConfigFile['projects'][number],
): Pauses {
  const times = [...content.maintenance, ...maintenance].map((each) => {
    const { cron, duration: durationMs, polls } = each;
    return { cron, timezone: each.timezone ?? timezone, durationMs, polls };
  });
  return { isPaused: paused, maintenance: times };
}

/** Converts a receiver that the rules have accepted. */
function toReceiver(
  receiver: ConfigFile['notify'][number],
  secretOf: (path: string | undefined, variable: string | undefined) => SecretSource,
): Receiver {
  const { name, type, url, from = '', to = [], teams, projects } = receiver;
  const told = {
    name,
    on: receiver.on,
    teams: teams && new Set(teams),
    projects: projects && new Set(projects),
  };
  if (type === 'email') {
    const smtpUrl = secretOf(receiver.smtp_url_file, receiver.smtp_url_env);
    return { ...told, type, smtpUrl, from, to };
  }
  const { secret_file: path, secret_env: variable } = receiver;
  const isSigned = path !== undefined || variable !== undefined;
  return {
    ...told,
    type,
    url: url === undefined ? secretOf(receiver.url_file, receiver.url_env) : { url },
    secret: isSigned ? secretOf(path, variable) : undefined,
  };
}

function hostOf(url: string | undefined): readonly string[] {
  return url === undefined ? [] : [new URL(url).hostname.replace(/\.$/, '')];
}

/** Returns the expectations of a project: its own options, and those for all projects where it has none. */
function toExpectations(
  all: ConfigFile['expect'],
  own: NonNullable<ConfigFile['projects'][number]['expect']>,
): Expectations {
  const ratio = own.max_failure_ratio ?? all.max_failure_ratio;
  return {
    limits: {
      PENDING: own.max_pending ?? all.max_pending,
      RUNNING: own.max_running ?? all.max_running,
    },
    maxFailureRatio: ratio === 'off' ? undefined : ratio,
  };
}

export function toSource(path: string, text: string): Source {
  return { path, digest: createHash('sha256').update(text).digest('base64') };
}

/** Returns the files that a configuration is read from now: new files may match its patterns. */
export function sourcesOf({ sources, projectsFiles }: Config): readonly string[] {
  const others = sources.filter(({ projects }) => projects === undefined);
  return [...others.map(({ path }) => path), ...findFiles(projectsFiles, '')];
}

/** Returns the content of these files when they were read, to compare with {@link readSources}. */
export function contentOf(sources: readonly Source[]): string {
  return sources.map(({ digest }) => digest).join('\n');
}

/**
 * Reads files again. Equal contents are equal texts or the same reasons why files cannot be read.
 * @param paths absolute
 */
export function readSources(paths: readonly string[]): { content: string; isReadable: boolean } {
  const now = paths.map((path) => {
    const { text, fault } = readTextFile(path, MAX_CERTIFICATES_BYTES);
    return { digest: fault ?? toSource(path, text).digest, isReadable: fault === undefined };
  });
  return {
    content: now.map(({ digest }) => digest).join('\n'),
    isReadable: now.every(({ isReadable }) => isReadable),
  };
}

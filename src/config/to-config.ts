import { dirname, resolve } from 'node:path';
import type { Expectations } from '../domain/expectation.ts';
import type { SecretSource } from '../domain/secret-source.ts';
import type { Config, HeartbeatUrl } from './config.ts';
import { type Env, readVariable } from './environment.ts';
import { couldBeKey } from './redaction.ts';
import type { ConfigFile } from './schema.ts';
import type { Source } from './source.ts';
import {
  API_KEY_OPTIONS,
  givenOption,
  HEARTBEAT_URL_OPTIONS,
  POSTGRES_URL_OPTIONS,
} from './secret-options.ts';

export interface ConfigContext {
  readonly file: string;
  readonly env: Env;
  /** Content of `ca_file`, if there is one. */
  readonly authorities: string | undefined;
  readonly sources: readonly Source[];
}

type KeyOptions = Pick<ConfigFile['service'], (typeof API_KEY_OPTIONS)[number]>;

/** Converts the content of a valid file to the frozen configuration. Relative paths start from the file's directory. */
export function toConfig(content: ConfigFile, context: ConfigContext): Config {
  const { file, env, authorities, sources } = context;
  const { service, store, web, heartbeat } = content;
  const directory = dirname(file);
  const absolute = (path: string | undefined) =>
    path === undefined ? undefined : resolve(directory, path);
  const secret = (path: string | undefined, variable = ''): SecretSource =>
    path === undefined
      ? { env: variable, value: readVariable(env, variable) }
      : { file: resolve(directory, path) };
  const apiKey = ({ api_key_file: path, api_key_env: variable }: KeyOptions): SecretSource =>
    path !== undefined && couldBeKey(path)
      ? { file: resolve(directory, path), couldBeKey: true }
      : secret(path, variable);
  const { postgres_url_file: urlFile, postgres_url_env: urlVariable } = store;
  const heartbeatUrl = (): HeartbeatUrl | undefined => {
    if (heartbeat.url !== undefined) return { url: heartbeat.url };
    if (givenOption(heartbeat, HEARTBEAT_URL_OPTIONS) === undefined) return undefined;
    return secret(heartbeat.url_file, heartbeat.url_env);
  };
  // Shared by all projects without their own: there can be 100,000.
  const serviceKey = apiKey(service);
  const expectations = toExpectations(content.expect, {});
  const projects = content.projects.map((project) => {
    const { id, schedule = content.schedule, timezone = content.timezone, datasets } = project;
    const hasKey = givenOption(project, API_KEY_OPTIONS) !== undefined;
    return {
      id,
      schedule,
      timezone,
      key: hasKey ? apiKey(project) : serviceKey,
      datasets,
      team: project.team ?? '',
      expect: project.expect ? toExpectations(content.expect, project.expect) : expectations,
    };
  });
  const named = [
    file,
    ...projects.flatMap(({ key }) => ('file' in key ? [key.file] : [])),
    ...[service.ca_file, urlFile, web.config_file, heartbeat.url_file].flatMap(
      (path) => absolute(path) ?? [],
    ),
  ];
  return deepFreeze({
    file: resolve(file),
    files: [...new Set(named.map((path) => resolve(path)))],
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
    projects,
    store: {
      ...(givenOption(store, POSTGRES_URL_OPTIONS)
        ? { postgresUrl: secret(urlFile, urlVariable), leaseMs: store.lease }
        : { path: resolve(directory, store.path) }),
      retentionMs: store.retention,
    },
    web: {
      ...web.listen,
      allowedHosts: [...web.allowed_hosts, ...hostOf(web.external_url)],
      externalUrl: web.external_url,
      enableLifecycle: web.enable_lifecycle,
      configFile: absolute(web.config_file),
    },
    log: { level: content.log.level },
    heartbeat: heartbeatUrl(),
  });
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

function deepFreeze<T>(value: T): T {
  if (Object.isFrozen(value)) return value;
  Object.values(value ?? {}).forEach(deepFreeze);
  return Object.freeze(value);
}

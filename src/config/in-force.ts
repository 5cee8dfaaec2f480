import { formatDuration, type SecretSource } from '../domain/options.ts';
import type { Receiver } from '../domain/receiver.ts';
import type { Config, ProjectConfig } from './config.ts';

/** Stands for a value that is a secret, or could be one. */
const REDACTED = '[redacted]';

/**
 * Returns a configuration in the words of its file, without its secrets: each option with the value in force, and each project
 * with its own schedule, key source and expectations.
 */
export function inForce(config: Config): object {
  const { service, store, web, heartbeat, sources } = config;
  const authorities = sources.find(
    ({ path, projects }) => path !== config.file && projects === undefined,
  );
  return {
    service: {
      base_url: service.baseUrl,
      // Nothing else can have allowed it.
      allow_http: service.baseUrl.startsWith('http:'),
      timeout: formatDuration(service.timeoutMs),
      retries: service.retries,
      max_concurrency: service.maxConcurrency,
      max_requests_per_second: service.maxRequestsPerSecond,
      max_response_size: formatSize(service.maxResponseBytes),
      max_items: service.maxItems,
      ca_file: authorities?.path,
      // Only a login has this character.
      proxy_url: service.proxyUrl?.includes('@') ? REDACTED : service.proxyUrl,
      prompt_url: config.promptUrl,
    },
    jitter: formatDuration(config.jitterMs),
    missing_after: config.missingAfter,
    projects_files: config.projectsFiles,
    projects: config.projects.map(projectInForce),
    store: {
      ...('path' in store
        ? { path: store.path }
        : { ...sourceOf('postgres_url', store.postgresUrl), lease: formatDuration(store.leaseMs) }),
      retention: formatDuration(store.retentionMs),
    },
    web: {
      listen: `${web.host.includes(':') ? `[${web.host}]` : web.host}:${web.port}`,
      allowed_hosts: web.allowedHosts,
      external_url: web.externalUrl,
      enable_lifecycle: web.enableLifecycle,
      config_file: web.configFile,
    },
    metrics: config.metrics,
    log: config.log,
    heartbeat:
      heartbeat && ('file' in heartbeat ? { url_file: heartbeat.file } : { url: REDACTED }),
    notify: config.notify.map(receiverInForce),
  };
}

function projectInForce(project: ProjectConfig): object {
  const { limits, maxFailureRatio = 'off' } = project.expect;
  const limit = (ms: number | string) => (typeof ms === 'number' ? formatDuration(ms) : ms);
  return {
    id: project.id,
    schedule: project.schedule,
    idle_schedule: project.idleSchedule,
    timezone: project.timezone,
    ...sourceOf('api_key', project.key),
    datasets: project.datasets,
    paused: project.pauses.isPaused,
    maintenance: project.pauses.maintenance.map(({ durationMs, ...each }) => ({
      ...each,
      duration: formatDuration(durationMs),
    })),
    team: project.team || undefined,
    expect: {
      max_pending: limit(limits.PENDING),
      max_running: limit(limits.RUNNING),
      max_failure_ratio: maxFailureRatio,
    },
  };
}

function receiverInForce(receiver: Receiver): object {
  const { name, type, on, teams, projects } = receiver;
  return {
    name,
    type,
    ...(receiver.type === 'email'
      ? {
          ...sourceOf('smtp_url', receiver.smtpUrl),
          from: receiver.from,
          to: receiver.to,
        }
      : {
          ...('url' in receiver.url ? { url: REDACTED } : sourceOf('url', receiver.url)),
          ...(receiver.secret && sourceOf('secret', receiver.secret)),
        }),
    on,
    teams: teams && [...teams],
    projects: projects && [...projects],
  };
}

/** Returns the option that names the source of a secret: its file or its variable. */
function sourceOf(name: string, source: SecretSource): object {
  if ('env' in source) return { [`${name}_env`]: source.env };
  return { [`${name}_file`]: source.couldBeKey === true ? REDACTED : source.file };
}

const UNITS = [
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
] as const;

function formatSize(bytes: number): string {
  const [unit, length] = UNITS.find((each) => bytes % each[1] === 0) ?? ['B', 1];
  return `${bytes / length}${unit}`;
}

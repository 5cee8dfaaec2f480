import { formatDuration } from '../../domain/options.ts';
import { readKey } from '../../client/api-key.ts';
import { type Config, type ProjectConfig, ConfigError } from '../../config/config.ts';
import {
  describeUnset,
  readHeartbeatUrl,
  readPostgresUrl,
  readReceiverUrl,
  readSigningKey,
  readSmtpUrl,
} from '../../config/secrets.ts';
import { DEFAULT_LIMIT_MS } from '../../domain/limits.ts';
import type { SecretSource } from '../../domain/options.ts';
import { isFor, type Receiver } from '../../domain/receiver.ts';
import { UNFINISHED_STATUSES } from '../../domain/status.ts';
import { quoteId } from '../../domain/suggest.ts';
import { ApiError, StoreError } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import { parseSchedule } from '../../schedule/cron.ts';
import { isSqlite } from '../../store/open.ts';
import { readUrl } from '../../store/postgres/url.ts';
import { type Connection, explainFailure, pageWarnings } from './connect.ts';

/** What `check` says of a valid configuration, without any part of a secret. */
export interface Finding {
  readonly message: string;
  /** False for a warning. */
  readonly isError: boolean;
}

const toWarning = (message: string): Finding => ({ message, isError: false });

/**
 * Finds what is probably not as meant, and what the daemon cannot use.
 * @param connections what the service answered, by project; undefined without `--connect`
 */
export async function findAll(
  config: Config,
  connections: ReadonlyMap<string, Connection> | undefined,
  clock: Clock,
): Promise<readonly Finding[]> {
  const keys = await keyFindings(config.projects, clock);
  const tried = [...(connections ?? [])];
  return [
    ...addressWarnings(config.service.baseUrl).map(toWarning),
    // With connections, each project says that its key cannot be used.
    ...keys.filter(({ isError }) => !(isError && connections)),
    ...(await addressFindings(config)),
    ...tried.flatMap((each) => pageWarnings(...each)).map(toWarning),
    ...limitWarnings(config.projects, clock.now()).map(toWarning),
    ...untoldWarnings(config).map(toWarning),
    ...tried
      .map((each) => explainFailure(...each))
      .filter((message) => message !== undefined)
      .map((message) => ({ message, isError: true })),
  ];
}

/** Address of the service in config/evalwatch.yaml and the other examples. */
const EXAMPLE = 'https://evaluation.example.com';

/**
 * Warns of the address of the examples, and of a base address that ends in the version of the API: evalwatch adds `/v2`
 * itself (docs/specification.md#requests), and the service answers 404 to `/v2/v2`.
 * @param baseUrl without a slash at its end
 */
function addressWarnings(baseUrl: string): readonly string[] {
  if (baseUrl === EXAMPLE) {
    return [
      `service.base_url is ${EXAMPLE}, so this configuration is an example: name your own with --config or EVALWATCH_CONFIG, or set the address of your service`,
    ];
  }
  if (!baseUrl.endsWith('/v2')) return [];
  return [
    `service.base_url ends in /v2, and evalwatch adds /v2 to every path: it will request ${baseUrl}/v2/projects/…; ` +
      'remove /v2, unless the service really has it twice',
  ];
}

/** Maximum number of projects that a warning names. */
const MAX_NAMED = 3;

/**
 * Warns of limits that are shorter than the longest interval of the schedule: a prompt that one poll finds waiting seems
 * stuck before the next poll. One warning for each status.
 */
function limitWarnings(projects: readonly ProjectConfig[], now: number): readonly string[] {
  return UNFINISHED_STATUSES.flatMap((status) => {
    const tooShort = projects.flatMap(({ id, schedule, timezone, expect }) => {
      const intervalMs = parseSchedule(schedule, timezone).maxIntervalMs(now);
      const configured = expect.limits[status];
      const limitMs = configured === 'auto' ? DEFAULT_LIMIT_MS[status] : configured;
      if (limitMs === 'off' || limitMs >= intervalMs) return [];
      const interval = formatDuration(intervalMs);
      return [`${quoteId(id)} (${formatDuration(limitMs)}, polled every ${interval})`];
    });
    if (tooShort.length === 0) return [];
    return [
      `the limit for ${status} is shorter than the time between two polls: ${firstOf(tooShort)}; ` +
        `prompts will seem stuck: set expect.max_${status.toLowerCase()} of the project to more, or to off`,
    ];
  });
}

/** Warns of projects that no receiver is told of, such as one whose team was forgotten. */
function untoldWarnings({ notify, projects }: Config): readonly string[] {
  const untold = projects.filter((project) => !notify.some((receiver) => isFor(receiver, project)));
  if (notify.length === 0 || untold.length === 0) return [];
  return [
    `no receiver is told of ${firstOf(untold.map(({ id }) => quoteId(id)))}: ` +
      'set the team of the project, or name the project in projects of a receiver',
  ];
}

function firstOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return names.slice(0, MAX_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** Finds the API keys that are missing, unusable, short or probably not only the key. */
async function keyFindings(
  projects: readonly ProjectConfig[],
  clock: Clock,
): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  const bySource = Map.groupBy(projects, ({ key }) => JSON.stringify(key));
  for (const [project, ...others] of bySource.values()) {
    if (project === undefined) continue;
    const { id, key } = project;
    const more = others.length === 0 ? '' : ` and ${others.length} more`;
    const findings = await findingsOf(key, async () =>
      'env' in key && key.value === undefined
        ? describeUnset('api_key_env')
        : doubtAbout(await readKey(key, clock)),
    );
    for (const { message, isError } of findings) {
      found.push({ message: `project ${quoteId(id)}${more}: ${message}`, isError });
    }
  }
  return found;
}

/** Returns what is wrong with the addresses of the database and of the heartbeat, and with those and the secrets of receivers. */
async function addressFindings({ store, heartbeat, notify }: Config): Promise<readonly Finding[]> {
  const inStore = isSqlite(store)
    ? []
    : await findingsOf(store.postgresUrl, async () => {
        await readUrl(await readPostgresUrl(store.postgresUrl));
      });
  const inHeartbeat =
    heartbeat === undefined
      ? []
      : await findingsOf(heartbeat, async () => void (await readHeartbeatUrl(heartbeat)));
  const inReceivers = await Promise.all(notify.map(receiverFindings));
  return [...inStore, ...inHeartbeat, ...inReceivers.flat()];
}

async function receiverFindings(receiver: Receiver): Promise<readonly Finding[]> {
  const found =
    receiver.type === 'email'
      ? [await findingsOf(receiver.smtpUrl, async () => void readSmtpUrl(receiver))]
      : [
          await findingsOf(receiver.url, async () => void readReceiverUrl(receiver)),
          await findingsOf(receiver.secret, async () => void readSigningKey(receiver)),
        ];
  const who = `receiver ${quoteId(receiver.name)}`;
  return found.flat().map(({ message, isError }) => ({ message: `${who}: ${message}`, isError }));
}

/** Reads a secret. @param read resolves to a doubt about a secret that can be used */
async function findingsOf(
  source: SecretSource | { readonly url: string } | undefined,
  read: () => Promise<string | void>,
): Promise<readonly Finding[]> {
  try {
    const doubt = await read();
    return doubt === undefined ? [] : [toWarning(doubt)];
  } catch (error) {
    const isExpected = [ApiError, ConfigError, StoreError].some((type) => error instanceof type);
    if (!(error instanceof Error && isExpected)) throw error;
    // The environment of the daemon may differ.
    const isUnset = source !== undefined && 'env' in source && source.value === undefined;
    return [{ message: error.message, isError: !isUnset }];
  }
}

/** Keys with fewer characters are accepted, but `check` warns (docs/specification.md#rows). */
const MIN_RECOMMENDED_LENGTH = 16;

/** What people copy together with a key. All of it would be sent as the key. */
const QUOTES = /^(["'`]).*\1$/;
const HEADER = /^(Bearer(?= )|X-API-Key(?= ?:)|Authorization(?= ?:))/i;

/** Returns why a usable key is probably not the right one; undefined if nothing is to be said. */
function doubtAbout(key: string): string | undefined {
  if (QUOTES.test(key)) {
    return 'the API key has quotes around it, which are sent too: remove them if they are no part of it';
  }
  const header = HEADER.exec(key)?.[0];
  if (header !== undefined) {
    return `the API key begins with ${header}, which is sent too: remove it if it is no part of the key`;
  }
  return key.length < MIN_RECOMMENDED_LENGTH
    ? `the API key has fewer than ${MIN_RECOMMENDED_LENGTH} characters`
    : undefined;
}

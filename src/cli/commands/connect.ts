import { version } from '../../app/process.ts';
import { formatDuration } from '../../domain/options.ts';
import type { Config, ProjectConfig } from '../../config/config.ts';
import { limitConcurrency } from '../../concurrency/limit-concurrency.ts';
import { createApiKeyReader } from '../../client/api-key.ts';
import { HttpEvaluationService } from '../../client/client.ts';
import { createRateLimit } from '../../client/gate.ts';
import type { Listing } from '../../domain/record.ts';
import { type Kind, PROMPT_STATUSES, type Status } from '../../domain/status.ts';
import { ApiError, type PollFailureReason } from '../../monitor/errors.ts';
import type { Endpoint, EventOf } from '../../monitor/events.ts';
import type { EvaluationService } from '../../monitor/ports/service.ts';
import { quoteId } from '../../domain/suggest.ts';
import type { Context } from '../command.ts';
import type { Column } from '../table.ts';

type RequestFinished = EventOf<'api.request_finished'>;

/** Signals that never abort. */
const RUNNING = {
  waits: new AbortController().signal,
  requests: new AbortController().signal,
};
/** Maximum number of listings that are read at a time, which bounds the memory. */
const MAX_PARALLEL = 4;

/** What the service answered to the requests that the daemon makes for a project. */
export interface Connection {
  readonly project: string;
  /** The first request that failed, after which no other was tried; undefined if none did. */
  readonly failure: { readonly endpoint: Endpoint; readonly error: ApiError } | undefined;
  /** Number of prompts by status, without statuses that no prompt has; undefined if they could not be listed. */
  readonly counts: ReadonlyMap<Status, number> | undefined;
  /** Listings of which the service has further pages. */
  readonly paged: readonly Kind[];
  /** Number of items that do not follow the documentation of the service. */
  readonly unexpected: number;
  /** Size of the listing of prompts after decompression; undefined if no request was sent. */
  readonly bytes: number | undefined;
  /** Time from the request to the end of the answer; undefined if no request was sent. */
  readonly durationMs: number | undefined;
}

/**
 * Makes each request of the daemon once for each project, without retries and without a store: the prompts, the datasets if they
 * are watched, and the details of one FAILED prompt if there is one.
 */
export async function tryConnections(
  { service, projects }: Config,
  { clock, progress }: Context,
): Promise<readonly Connection[]> {
  const readKey = createApiKeyReader(clock);
  const rateLimit = createRateLimit(service.maxRequestsPerSecond, clock);
  const limited = limitConcurrency(Math.min(service.maxConcurrency, MAX_PARALLEL));
  let tried = 0;

  async function connect({ id, key, datasets }: ProjectConfig): Promise<Connection> {
    const requests: RequestFinished[] = [];
    const paged: Kind[] = [];
    // A client of its own, so that what it emits is about this project.
    const client = new HttpEvaluationService({
      service: { ...service, retries: 0 },
      keyOf: () => key,
      readKey,
      clock,
      emit: (event) => {
        if (event.type === 'api.request_finished') requests.push(event);
        if (event.type === 'listing.paged') paged.push(event.kind);
      },
      version,
      rateLimit,
    });
    let endpoint: Endpoint = 'list_prompts';
    let failure: Connection['failure'];
    let prompts: Listing | undefined;
    try {
      prompts = await listOnce(client, id, 'prompt');
      endpoint = 'list_datasets';
      if (datasets) await listOnce(client, id, 'dataset');
      endpoint = 'get_prompt';
      const failed = prompts.records.values().find(({ status }) => status === 'FAILED');
      if (failed !== undefined) await client.getErrorInfo(id, failed.id, RUNNING);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      failure = { endpoint, error };
    } finally {
      await client.close();
      tried += 1;
      progress(`tried ${tried} of ${projects.length}`);
    }
    return { project: id, failure, paged, ...countItems(prompts), ...costOf(requests) };
  }

  const all = await Promise.all(projects.map((project) => limited(() => connect(project))));
  progress('');
  return all;
}

async function listOnce(service: EvaluationService, project: string, kind: Kind): Promise<Listing> {
  const answer = await service.list(project, kind, {
    previous: undefined,
    etag: undefined,
    allowDifference: false,
    isFailing: false,
    onRequest: () => {},
    signal: RUNNING,
  });
  if (answer.unchanged) throw new TypeError('a first listing is whole');
  return answer.listing;
}

function countItems(listing: Listing | undefined): Pick<Connection, 'counts' | 'unexpected'> {
  if (listing === undefined) return { counts: undefined, unexpected: 0 };
  const counts = new Map<Status, number>();
  for (const { status } of listing.records.values()) {
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return { counts, unexpected: listing.anomalies.reduce((sum, { count }) => sum + count, 0) };
}

/** The last listing of prompts counts: one whose key was rotated meanwhile is sent again. */
function costOf(requests: readonly RequestFinished[]): Pick<Connection, 'bytes' | 'durationMs'> {
  const last = requests.findLast(({ endpoint }) => endpoint === 'list_prompts');
  return { bytes: last?.bytes, durationMs: last?.durationMs };
}

/** Returns a warning for each listing of which the service has further pages. */
export function pageWarnings({ project, paged }: Connection): readonly string[] {
  return paged.map(
    (kind) =>
      `the service has further pages of the ${kind}s of project ${quoteId(project)} (Link with rel="next"), and evalwatch reads only the first: what leaves it counts as gone`,
  );
}

/** Says which request failed, if one did: what was requested, what the service answered, and what to do. */
export function explainFailure({ project, failure }: Connection): string | undefined {
  if (failure === undefined) return undefined;
  const { endpoint, error } = failure;
  const { reason, message, details } = error;
  const { url, detail, statusCode, location } = details;
  const target = location === undefined ? '' : `, and redirects to ${JSON.stringify(location)}`;
  const request = url === undefined ? '' : ` (GET ${url})`;
  const words = detail === undefined ? '' : `: ${JSON.stringify(detail)}`;
  // The message about a key that cannot be read already says what to do.
  const isUnsent = reason === 'auth' && statusCode === undefined;
  const isLogin = location !== undefined && LOGIN.test(location);
  const advice = isLogin ? LOGIN_ADVICE : ADVICE[reason];
  const rest = isUnsent || advice === undefined ? '' : `. ${advice}`;
  return `project ${quoteId(project)}${FAILED[endpoint]}: ${message}${target}${request}${words}${rest}`;
}

const FAILED: Record<Endpoint, string> = {
  list_prompts: ' cannot be listed',
  list_datasets: ': its datasets cannot be listed',
  get_prompt: ': the details of a FAILED prompt cannot be read',
};

/** What addresses of pages to log in have in common. */
const LOGIN = /log-?[io]n|sign-?in|\bsso\b|\bsaml|oauth|openid|authoriz|\bauth\b/i;
const LOGIN_ADVICE =
  'This looks like a page to log in, which evalwatch cannot do: check base_url and the API key';

const ADVICE: Partial<Record<PollFailureReason, string>> = {
  auth: 'Check the API key, and whether it may read this project',
  not_found: 'Check the id of the project, and base_url, which must not end in /v2',
  redirect: 'Set base_url to the address that the service redirects to',
  network: 'Check base_url, the network and proxy_url',
  tls: 'Check base_url; if the certificate is from a private authority, set ca_file to the certificate of that authority',
  invalid_response: 'Check that base_url is the address of an Evaluation Service',
  too_large: 'Raise max_response_size or max_items',
};

export const CONNECTION_COLUMNS: readonly Column<Connection>[] = [
  ['project', ({ project }) => project],
  [
    'listing',
    ({ failure }) => failure?.error.reason ?? 'ok',
    { color: ({ failure }) => (failure === undefined ? 'green' : 'red') },
  ],
  ['endpoint', ({ failure }) => failure?.endpoint],
  ['status_code', ({ failure }) => failure?.error.details.statusCode?.toString()],
  ...PROMPT_STATUSES.map((status): Column<Connection> => [
    status,
    ({ counts }) => counts && String(counts.get(status) ?? 0),
  ]),
  ['unexpected_items', ({ counts, unexpected }) => counts && String(unexpected)],
  ['size', ({ bytes }) => (bytes === undefined ? undefined : formatSize(bytes))],
  [
    'duration',
    ({ durationMs }) =>
      durationMs === undefined ? undefined : formatDuration(Math.ceil(durationMs)),
  ],
];

/** Returns the fields of the JSON document about a connection; none without `--connect`. */
export function connectionFields(connection: Connection | undefined): object {
  if (connection === undefined) return {};
  const { failure, counts, paged, unexpected, bytes, durationMs } = connection;
  const { message, reason, details } = failure?.error ?? {};
  return {
    connection: {
      endpoint: failure?.endpoint ?? null,
      reason: reason ?? null,
      status_code: details?.statusCode ?? null,
      message: message ?? null,
      url: details?.url ?? null,
      location: details?.location ?? null,
      detail: details?.detail ?? null,
      paged,
      prompts: counts
        ? Object.fromEntries(PROMPT_STATUSES.map((status) => [status, counts.get(status) ?? 0]))
        : null,
      unexpected_items: counts ? unexpected : null,
      bytes: bytes ?? null,
      duration_ms: durationMs === undefined ? null : Math.ceil(durationMs),
    },
  };
}

/** `812 B`, `4.0 KiB`, `12.3 MiB`. */
function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const isLarge = bytes >= 1024 ** 2;
  return `${(bytes / (isLarge ? 1024 ** 2 : 1024)).toFixed(1)} ${isLarge ? 'MiB' : 'KiB'}`;
}

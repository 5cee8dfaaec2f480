import { version } from '../../app/process.ts';
import { formatDuration } from '../../domain/options.ts';
import type { Config, ProjectConfig } from '../../config/config.ts';
import { limitConcurrency } from '../../concurrency/limit-concurrency.ts';
import { createApiKeyReader } from '../../client/api-key.ts';
import { HttpEvaluationService } from '../../client/client.ts';
import { createRateLimit } from '../../client/gate.ts';
import type { Listing } from '../../domain/record.ts';
import { type Kind, PROMPT_STATUSES, type PromptStatus } from '../../domain/status.ts';
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

/** What the service answered to the requests that the daemon makes for a project, as the JSON document has it. */
export interface Connection {
  /** The first request that failed, after which no other was tried, and why; null if none did. */
  readonly endpoint: Endpoint | null;
  readonly reason: PollFailureReason | null;
  readonly status_code: number | null;
  readonly message: string | null;
  readonly url: string | null;
  readonly location: string | null;
  readonly detail: string | null;
  /** Listings of which the service has further pages. */
  readonly paged: readonly Kind[];
  /** Number of prompts by status; null if they could not be listed. */
  readonly prompts: Readonly<Record<PromptStatus, number>> | null;
  /** Number of items that do not follow the documentation of the service. */
  readonly unexpected_items: number | null;
  /** Size of the listing of prompts after decompression; null if no request was sent. */
  readonly bytes: number | null;
  /** Time from the request to the end of the answer; null if no request was sent. */
  readonly duration_ms: number | null;
}

/**
 * Makes each request of the daemon once for each project, without retries and without a store: the prompts, the datasets if they
 * are watched, and the details of one FAILED prompt if there is one. Returns what was answered by project.
 */
export async function tryConnections(
  { service, projects }: Config,
  { clock, progress }: Context,
): Promise<ReadonlyMap<string, Connection>> {
  const readKey = createApiKeyReader(clock);
  const rateLimit = createRateLimit(service.maxRequestsPerSecond, clock);
  const limited = limitConcurrency(Math.min(service.maxConcurrency, MAX_PARALLEL));
  let tried = 0;

  async function connect({ id, key, datasets }: ProjectConfig) {
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
    let error: ApiError | undefined;
    let prompts: Listing | undefined;
    try {
      prompts = await listOnce(client, id, 'prompt');
      endpoint = 'list_datasets';
      if (datasets) await listOnce(client, id, 'dataset');
      endpoint = 'get_prompt';
      const failed = prompts.records.values().find(({ status }) => status === 'FAILED');
      if (failed !== undefined) await client.getErrorInfo(id, failed.id, RUNNING);
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      error = thrown;
    } finally {
      await client.close();
      tried += 1;
      progress(`tried ${tried} of ${projects.length}`);
    }
    // One whose key was rotated meanwhile is sent again.
    const listing = requests.findLast((each) => each.endpoint === 'list_prompts');
    const connection: Connection = {
      endpoint: error ? endpoint : null,
      reason: error?.reason ?? null,
      status_code: error?.details.statusCode ?? null,
      message: error?.message ?? null,
      url: error?.details.url ?? null,
      location: error?.details.location ?? null,
      detail: error?.details.detail ?? null,
      paged,
      prompts: prompts ? countPrompts(prompts) : null,
      unexpected_items: prompts?.anomalies.reduce((sum, { count }) => sum + count, 0) ?? null,
      bytes: listing?.bytes ?? null,
      duration_ms: listing ? Math.ceil(listing.durationMs) : null,
    };
    return [id, connection] as const;
  }

  const all = await Promise.all(projects.map((project) => limited(() => connect(project))));
  progress('');
  return new Map(all);
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

function countPrompts({ records }: Listing): Record<PromptStatus, number> {
  const counts = { PENDING: 0, RUNNING: 0, COMPLETED: 0, FAILED: 0, UNKNOWN: 0 };
  for (const { status } of records.values()) if (status !== 'NONE') counts[status] += 1;
  return counts;
}

/** Returns a warning for each listing of which the service has further pages. */
export function pageWarnings(project: string, { paged }: Connection): readonly string[] {
  return paged.map(
    (kind) =>
      `the service has further pages of the ${kind}s of project ${quoteId(project)} (Link with rel="next"), and evalwatch reads only the first: what leaves it counts as gone`,
  );
}

/** Says which request failed, if one did: what was requested, what the service answered, and what to do. */
export function explainFailure(
  project: string,
  { endpoint, reason, message, status_code, url, location, detail }: Connection,
): string | undefined {
  if (endpoint === null || reason === null) return undefined;
  const target = location === null ? '' : `, and redirects to ${JSON.stringify(location)}`;
  const request = url === null ? '' : ` (GET ${url})`;
  const words = detail === null ? '' : `: ${JSON.stringify(detail)}`;
  // The message about a key that cannot be read already says what to do.
  const isUnsent = reason === 'auth' && status_code === null;
  const isLogin = location !== null && LOGIN.test(location);
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
  too_large:
    'Raise max_response_size or max_items; one item, or the details of a prompt, may have at most 1 MiB',
};

export const CONNECTION_COLUMNS: readonly Column<readonly [project: string, Connection]>[] = [
  ['project', ([project]) => project],
  [
    'listing',
    ([, { reason }]) => reason ?? 'ok',
    { color: ([, { reason }]) => (reason === null ? 'green' : 'red') },
  ],
  ['endpoint', ([, { endpoint }]) => endpoint ?? undefined],
  ['status_code', ([, { status_code }]) => status_code?.toString()],
  ...PROMPT_STATUSES.map(
    (status) =>
      [
        status,
        ([, { prompts }]: readonly [string, Connection]) => prompts?.[status].toString(),
      ] as const,
  ),
  ['unexpected_items', ([, { unexpected_items }]) => unexpected_items?.toString()],
  ['size', ([, { bytes }]) => (bytes === null ? undefined : formatSize(bytes))],
  [
    'duration',
    ([, { duration_ms }]) => (duration_ms === null ? undefined : formatDuration(duration_ms)),
  ],
];

/** `812 B`, `4.0 KiB`, `12.3 MiB`. */
function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const isLarge = bytes >= 1024 ** 2;
  return `${(bytes / (isLarge ? 1024 ** 2 : 1024)).toFixed(1)} ${isLarge ? 'MiB' : 'KiB'}`;
}

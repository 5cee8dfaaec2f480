import { systemClock } from '../app/clock.ts';
import type { Config, ProjectConfig } from '../config/config.ts';
import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import type { Listing } from '../domain/record.ts';
import type { Kind, Status } from '../domain/status.ts';
import { ApiError } from '../monitor/errors.ts';
import type { Endpoint, EventOf } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { EvaluationService } from '../monitor/ports/service.ts';

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
 * are watched, and the details of one FAILED prompt if there is one. `onTried` is called after each project.
 */
export async function tryConnections(
  { service, projects }: Pick<Config, 'service' | 'projects'>,
  clock: Clock,
  onTried: (count: number) => void,
): Promise<readonly Connection[]> {
  const [
    { createEvaluationService },
    { createRateLimit },
    { createRecordBudget },
    { createApiKeyReader },
    { version },
  ] = await Promise.all([
    import('../evaluation-api/client.ts'),
    import('../evaluation-api/fairness/rate-limit.ts'),
    import('../evaluation-api/listing/record-budget.ts'),
    import('../evaluation-api/api-key.ts'),
    import('../app/version.ts'),
  ]);
  const readKey = createApiKeyReader(clock);
  const rateLimit = createRateLimit(service.maxRequestsPerSecond, clock);
  const limited = limitConcurrency(Math.min(service.maxConcurrency, MAX_PARALLEL));
  let tried = 0;

  async function connect({ id, key, datasets }: ProjectConfig): Promise<Connection> {
    const requests: RequestFinished[] = [];
    const paged: Kind[] = [];
    // A client of its own, so that what it emits is about this project.
    const client = createEvaluationService({
      service: { ...service, retries: 0 },
      keyOf: () => key,
      readKey,
      clock,
      emit: (event) => {
        if (event.type === 'api.request_finished') requests.push(event);
        if (event.type === 'listing.paged') paged.push(event.kind);
      },
      records: createRecordBudget(Infinity, systemClock),
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
      onTried((tried += 1));
    }
    return { project: id, failure, paged, ...countItems(prompts), ...costOf(requests) };
  }

  return await Promise.all(projects.map((project) => limited(() => connect(project))));
}

async function listOnce(service: EvaluationService, project: string, kind: Kind): Promise<Listing> {
  const answer = await service.list(project, kind, {
    previous: undefined,
    revalidate: 'bytes',
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

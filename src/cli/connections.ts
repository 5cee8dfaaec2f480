import { systemClock } from '../app/clock.ts';
import type { Config, ProjectConfig } from '../config/config.ts';
import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import type { Status } from '../domain/status.ts';
import { ApiError } from '../monitor/errors.ts';
import type { EventOf } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { EvaluationService, ListingAnswer } from '../monitor/ports/service.ts';

type RequestFinished = EventOf<'api.request_finished'>;

/** Maximum number of listings that are read at a time, which bounds the memory. */
const MAX_PARALLEL = 4;

/** What the service answered to one request for the prompts of a project. */
export interface Connection {
  readonly project: string;
  /** Undefined if the listing could be read. */
  readonly failure: ApiError | undefined;
  /** Number of prompts by status; statuses without prompts are absent. */
  readonly counts: ReadonlyMap<Status, number>;
  /** Number of items that do not follow the documentation of the service. */
  readonly unexpected: number;
  /** Size of the body after decompression; undefined if no request was sent. */
  readonly bytes: number | undefined;
  /** Time from the request to the end of the answer; undefined if no request was sent. */
  readonly durationMs: number | undefined;
}

/** Lists the prompts of each project once, without retries and without a store. `onTried` is called after each. */
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

  async function connect({ id, key }: ProjectConfig): Promise<Connection> {
    const requests: RequestFinished[] = [];
    // A client of its own, so that what it emits is about this project.
    const client = createEvaluationService({
      service: { ...service, retries: 0 },
      keyOf: () => key,
      readKey,
      clock,
      emit: (event) => {
        if (event.type === 'api.request_finished') requests.push(event);
      },
      records: createRecordBudget(Infinity, systemClock),
      version,
      rateLimit,
    });
    try {
      const counted = countItems(await listOnce(client, id));
      return { project: id, failure: undefined, ...counted, ...costOf(requests) };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return { project: id, failure: error, counts: new Map(), unexpected: 0, ...costOf(requests) };
    } finally {
      await client.close();
      onTried((tried += 1));
    }
  }

  return await Promise.all(projects.map((project) => limited(() => connect(project))));
}

async function listOnce(service: EvaluationService, project: string): Promise<ListingAnswer> {
  const { signal } = new AbortController();
  return await service.list(project, 'prompt', {
    previous: undefined,
    revalidate: 'bytes',
    allowDifference: false,
    isFailing: false,
    onRequest: () => {},
    signal: { waits: signal, requests: signal },
  });
}

function countItems(answer: ListingAnswer): Pick<Connection, 'counts' | 'unexpected'> {
  const counts = new Map<Status, number>();
  if (answer.unchanged) return { counts, unexpected: 0 };
  const { records, anomalies } = answer.listing;
  for (const { status } of records.values()) counts.set(status, (counts.get(status) ?? 0) + 1);
  return { counts, unexpected: anomalies.reduce((sum, { count }) => sum + count, 0) };
}

/** The last request counts: one whose key was rotated meanwhile is sent again. */
function costOf(requests: readonly RequestFinished[]): Pick<Connection, 'bytes' | 'durationMs'> {
  const last = requests.at(-1);
  return { bytes: last?.bytes, durationMs: last?.durationMs };
}

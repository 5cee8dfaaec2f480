import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type {
  ExperimentFields,
  FailureFields,
  ProjectFields,
  PromptFields,
} from '../../src/rows/schema.ts';

const PROJECT = 'alpha';
const WITHOUT_LIMIT = { limit_seconds: null, limit_source: null, typical_seconds: null };

/** The API of a daemon that polls the project `alpha`, as a test sets it. `await using` closes it. */
export class FakeDaemon implements AsyncDisposable {
  project: ProjectFields = {
    project: PROJECT,
    up: true,
    consecutive_failures: 0,
    reason: null,
    last_error: null,
    last_poll: '2026-11-29T10:00:00.000Z',
    last_success: '2026-11-29T10:00:00.000Z',
    next_poll: null,
    prompts: { PENDING: 0, RUNNING: 0, COMPLETED: 0, FAILED: 0, UNKNOWN: 0 },
    missing: 0,
    team: null,
    pause: null,
    expectations: { PENDING: WITHOUT_LIMIT, RUNNING: WITHOUT_LIMIT },
    max_failure_ratio: null,
  };
  readonly experiments = new Map<string, ExperimentFields>();
  prompts: PromptFields[] = [];
  failures: FailureFields[] = [];
  /** Answers instead of the API, if it returns something. */
  instead: (request: IncomingMessage) => readonly [status: number, body: object] | undefined = () =>
    undefined;
  /** Called after a path was answered. */
  onAnswered: (path: string) => void = () => {};
  readonly requests: IncomingMessage[] = [];
  /** Rows on a page, at most. */
  pageSize = 1000;
  readonly #streams = new Set<ServerResponse>();
  readonly #server = createServer((request, response) => this.#answer(request, response));

  static async start(): Promise<FakeDaemon> {
    const daemon = new FakeDaemon();
    daemon.#server.listen(0, '127.0.0.1');
    await once(daemon.#server, 'listening');
    return daemon;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  /** Sets an experiment, by default a finished one. */
  set(experiment: string, change: Partial<ExperimentFields> = {}): void {
    const prompts = { PENDING: 0, RUNNING: 0, COMPLETED: 0, FAILED: 0, UNKNOWN: 0 };
    const finished = change.state === undefined || change.state === 'finished';
    this.experiments.set(experiment, {
      project: PROJECT,
      experiment,
      state: 'finished',
      first_move: '2026-11-29T10:00:00.000Z',
      last_move: '2026-11-29T10:41:00.000Z',
      ended: '2026-11-29T10:41:00.000Z',
      finished: finished ? new Date().toISOString() : null,
      duration_seconds: finished ? 2460 : null,
      ...change,
      prompts: { ...prompts, ...(change.prompts ?? { COMPLETED: 40 }) },
    });
  }

  /** Adds a prompt of an experiment; a FAILED one with its failure. */
  addPrompt(prompt: Partial<PromptFields>, error?: FailureFields['error_info']): void {
    const prompt_id = prompt.prompt_id ?? `p${this.prompts.length + 1}`;
    const experiment = prompt.experiment ?? null;
    this.prompts.push({
      project: PROJECT,
      prompt_id,
      prompt_name: null,
      experiment,
      dataset: null,
      metric: null,
      status: 'COMPLETED',
      status_raw: null,
      since: '2026-11-29T10:41:00.000Z',
      missing: 0,
      ...WITHOUT_LIMIT,
      ...prompt,
    });
    if (error === undefined) return;
    this.failures.unshift({
      transition_id: this.failures.length + 1,
      time: '2026-11-29T10:41:00.000Z',
      project: PROJECT,
      prompt_id,
      prompt_name: null,
      experiment,
      error_info: error,
      error_msg_truncated: false,
      reason: null,
      settled: true,
      cause: null,
    });
  }

  /** Sends an event to every stream. */
  send(type: string, data: object, id?: string): void {
    const position = id === undefined ? '' : `id: ${id}\n`;
    for (const stream of this.#streams) {
      stream.write(`event: ${type}\n${position}data: ${JSON.stringify(data)}\n\n`);
    }
  }

  /** Ends every connection. */
  disconnect(): void {
    this.#server.closeAllConnections();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.disconnect();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.requests.push(request);
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://daemon');
    const path = pathname.replace(/^\/api\/v1\//, '');
    const [status, body] = this.instead(request) ?? [200, this.#page(path, searchParams)];
    if (status === 200 && path === 'events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`retry: 2000\nid: ${searchParams.get('after') ?? 't0.f0.x0'}\n\n`);
      this.#streams.add(response);
      response.on('close', () => this.#streams.delete(response));
      return;
    }
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body), () => this.onAnswered(path));
  }

  #page(path: string, query: URLSearchParams): object {
    const sources: Record<string, readonly object[]> = {
      projects: [this.project],
      experiments: [...this.experiments.values()],
      prompts: this.prompts,
      failures: this.failures,
    };
    const rows = (sources[path] ?? []).filter((row) =>
      Object.entries(row).every(
        ([name, value]) => !query.has(name) || name === 'limit' || query.get(name) === value,
      ),
    );
    const from = Number(query.get('cursor') ?? 0);
    const to = from + this.pageSize;
    return { data: rows.slice(from, to), next_cursor: to < rows.length ? String(to) : null };
  }
}

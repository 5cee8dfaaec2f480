import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errorOf, promptDetail } from '../../test/support/service.ts';
import { listingBodies } from '../workload.ts';

const PROMPTS = 100;
/** Every fifth poll finds one percent of the prompts moved. */
const CHANGES_ONE_IN = 5;
const VERSIONS = 8;
/** Asked for once after each move to FAILED. */
const PROMPT = /^\/v2\/prompts\/([^/]+)\/$/;

/** An Evaluation Service that counts who asks for what, and when. */
export interface CountingService extends AsyncDisposable {
  readonly url: string;
  /** Listings asked for since the last call of {@link reset}. */
  polls(): number;
  /** Of them, those that a project was asked for more often than it can have ticks in this time. */
  tooMany(intervalMs: number): number;
  reset(): void;
}

export async function startCountingService(): Promise<CountingService> {
  // All projects show the same listings: what the service costs is not what is measured.
  const bodies = [...listingBodies(0, { prompts: PROMPTS, versions: VERSIONS })];
  const versions = new Map<string, number>();
  let counts = new Map<string, number>();
  let since = performance.now();
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    const project = request.url ?? '';
    const [, prompt] = PROMPT.exec(project) ?? [];
    if (prompt !== undefined) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(promptDetail(errorOf(prompt))));
      return;
    }
    const asked = versions.get(project) ?? 0;
    versions.set(project, asked + 1);
    counts.set(project, (counts.get(project) ?? 0) + 1);
    const version = Math.floor(asked / CHANGES_ONE_IN) % bodies.length;
    const etag = `"${version}"`;
    if (request.headers['if-none-match'] === etag) {
      response.writeHead(304, { etag }).end();
      return;
    }
    const body = bodies[version];
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': body?.length,
      etag,
    });
    response.end(body);
  });
  server.listen(0, '127.0.0.1', 2000);
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    polls: () => counts.values().reduce((sum, count) => sum + count, 0),
    tooMany: (intervalMs) => {
      // One tick more than there are whole intervals, and one more that was late when the count began.
      const most = Math.floor((performance.now() - since) / intervalMs) + 2;
      return counts.values().reduce((sum, count) => sum + Math.max(0, count - most), 0);
    },
    reset: () => {
      counts = new Map();
      since = performance.now();
    },
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

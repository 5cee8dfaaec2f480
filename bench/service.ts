import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { listingBodies, projectIds, type Workload } from './workload.ts';

interface Listing {
  readonly body: Buffer;
  readonly etag: string | undefined;
}

/** Evaluation Service that only sends prepared responses. */
export interface BenchService extends AsyncDisposable {
  /** Returns the base address of a run. Each run begins with the first version. */
  readonly urlOf: (run: string) => string;
}

export async function startBenchService(workload: Workload): Promise<BenchService> {
  const listings = prepare(workload);
  const served = new Map<string, number>();

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const { url = '' } = request;
    const [, project = ''] = /\/v2\/projects\/([^/]+)\/prompts\/$/.exec(url) ?? [];
    const versions = listings.get(project);
    const before = served.get(url) ?? 0;
    served.set(url, before + 1);
    const listing = versions?.[Math.min(before, versions.length - 1)];
    if (listing === undefined) {
      response.writeHead(404).end();
      return;
    }
    const { body, etag } = listing;
    if (etag !== undefined && request.headers['if-none-match'] === etag) {
      response.writeHead(304, { etag }).end();
      return;
    }
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': body.length,
      ...(workload.encoding === 'gzip' && { 'content-encoding': 'gzip' }),
      ...(etag !== undefined && { etag }),
    });
    response.end(body);
  }

  const server = createServer({ keepAliveTimeout: 60_000 }, answer);
  server.listen(0, '127.0.0.1', 2000);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    urlOf: (run) => `http://127.0.0.1:${port}/${run}`,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function prepare(workload: Workload): ReadonlyMap<string, readonly Listing[]> {
  const ids = projectIds(workload.projects);
  return new Map(
    ids.map((id, index) => {
      const listings: Listing[] = [];
      for (const body of listingBodies(index, workload)) {
        listings.push({
          body: workload.encoding === 'gzip' ? gzipSync(body) : body,
          etag: workload.etag ? `"${id}-${listings.length}"` : undefined,
        });
      }
      return [id, listings];
    }),
  );
}

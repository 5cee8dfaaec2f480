/** A thread that only reads, so that page, API and scrapes do not wait for large commits. */
import { openReads } from '../database.ts';
import { makeCall } from './calls.ts';
import { serveRequests } from './serve.ts';
import type { ReadRequest } from './thread-messages.ts';

await serveRequests<ReadRequest>(({ file }) => {
  const { reads, close } = openReads(file);
  return {
    opened: undefined,
    serve: (request) => (request === 'close' ? close() : makeCall(reads, request.read)),
  };
});

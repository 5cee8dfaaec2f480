import type { ServerResponse } from 'node:http';

/** Maximum size of all renderings that clients are reading; above it, the newest is shared. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;
const SLICE_BYTES = 256 * 1024;

interface Rendering {
  readonly bytes: Uint8Array;
  readers: number;
}

/** The exposition for one answer. */
export interface Scrape {
  readonly length: number;
  readonly body: ReadableStream<Uint8Array>;
}

/**
 * Answers scrapes with the current exposition. Scrapes at the same time share one rendering. While slow clients hold many
 * older ones, new scrapes share the newest: an exposition can be 16 MB long.
 * @param render makes the exposition; called again only after the previous call has ended
 */
export function createScrapes(
  render: () => Promise<string>,
): (response: ServerResponse | undefined) => Promise<Scrape> {
  /** Renderings that clients are reading, the newest last. */
  const held = new Set<Rendering>();
  let rendering: Promise<Rendering> | undefined;

  async function renderNow(): Promise<Rendering> {
    const bytes = Buffer.from(await render());
    return { bytes, readers: 0 };
  }

  function find(): Promise<Rendering> | Rendering {
    const newest = [...held].at(-1);
    const bytes = held.values().reduce((sum, each) => sum + each.bytes.length, 0);
    if (rendering === undefined && newest !== undefined && bytes >= MAX_HELD_BYTES) return newest;
    rendering ??= renderNow().finally(() => {
      rendering = undefined;
    });
    return rendering;
  }

  function hold(found: Rendering, response: ServerResponse): void {
    found.readers += 1;
    held.add(found);
    response.once('close', () => {
      found.readers -= 1;
      if (found.readers === 0) held.delete(found);
    });
  }

  return async (response) => {
    const found = await find();
    // The 'close' event of a response that closed before this point will not fire again.
    if (response !== undefined && !response.destroyed) hold(found, response);
    return { length: found.bytes.length, body: inSlices(found.bytes) };
  };
}

/** Streams the bytes in slices, so that a client that does not read holds one slice only, also over TLS. */
function inSlices(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let sent = 0;
  return new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (sent < bytes.length) controller.enqueue(bytes.subarray(sent, sent + SLICE_BYTES));
        sent += SLICE_BYTES;
        if (sent >= bytes.length) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}

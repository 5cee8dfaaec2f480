import type { Dispatcher } from 'undici';
import type { Answer, Request } from '../../src/simulator/service.ts';
import type { Kernel } from './kernel.ts';
import type { Machine } from './machine.ts';
import type { ServedListing } from './rules/model.ts';

/** Probabilities of faults of network and service, for each request. */
export interface Weather {
  /** The connection is refused or reset before the request arrives. */
  refused: number;
  /** The request arrives, and its answer is lost with the connection. */
  lost: number;
  /** The connection is half open: nothing ever comes. */
  silent: number;
  /** The service answers 500, 503 or 429. */
  error: number;
  /** The body is cut off by a reset. */
  cut: number;
  /** The body ends early, as if it were whole. */
  garbled: number;
  /** The answer takes seconds. */
  slow: number;
}

export const FAIR: Weather = {
  refused: 0.002,
  lost: 0.002,
  silent: 0.001,
  error: 0.002,
  cut: 0.002,
  garbled: 0.001,
  slow: 0.01,
};
export const CALM: Weather = {
  refused: 0,
  lost: 0,
  silent: 0,
  error: 0,
  cut: 0,
  garbled: 0,
  slow: 0,
};

/** An answer, and what its client can read of a listing. */
interface Served extends Answer {
  readonly listing: ServedListing | undefined;
}

const DETAIL = /^\/v2\/prompts\//;

export interface NetworkOptions {
  readonly kernel: Kernel;
  readonly machine: Machine;
  readonly answer: (request: Request) => Served;
  readonly weather: () => Weather;
  /** Called when a request goes out, for a listing or the details of a prompt. */
  readonly onSent: (isDetail: boolean) => void;
  /** Called when only the end of an answer is still on its way. */
  readonly onEnding: (isDetail: boolean) => void;
  /** Called before the process reads the last byte of a usable listing. */
  readonly onListing: (listing: ServedListing) => void;
}

/** The connections of a process to the service: undici without sockets. */
export type Network = ReturnType<typeof createNetwork>;

export function createNetwork(options: NetworkOptions) {
  const { kernel, machine, answer, weather, onSent, onEnding, onListing } = options;
  let underWay = 0;

  function dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) {
    let isOver = false;
    let isReading = true;
    let waiting: (() => void)[] = [];
    underWay += 1;

    function end(): void {
      if (!isOver) underWay -= 1;
      isOver = true;
    }

    function fail(code: string): void {
      if (isOver) return;
      end();
      handler.onResponseError?.(controller, Object.assign(new Error(code), { code }));
    }

    const controller: Dispatcher.DispatchController = {
      get aborted() {
        return isOver;
      },
      get paused() {
        return !isReading;
      },
      get reason() {
        return null;
      },
      abort: (reason) => {
        if (isOver) return;
        end();
        machine.after(0, () => handler.onResponseError?.(controller, reason));
      },
      pause: () => {
        isReading = false;
      },
      resume: () => {
        isReading = true;
        const next = waiting;
        waiting = [];
        for (const read of next) machine.after(0, read);
      },
    };

    /** Calls the handler `ms` from now, once the process reads. */
    function deliver(ms: number, act: () => void): void {
      machine.after(ms, function read() {
        if (isOver) return;
        if (isReading) act();
        else waiting.push(read);
      });
    }

    function respond({ status, headers, body, listing }: Served): void {
      const { cut, garbled } = weather();
      let bytes = body;
      const isCut = bytes.length > 0 && kernel.chance(cut);
      const isGarbled = bytes.length > 1 && !isCut && kernel.chance(garbled);
      if (isCut || isGarbled) bytes = bytes.subarray(0, Math.floor(kernel.random() * bytes.length));
      const isWhole = status === 304;
      // Its status is enough, even if the process aborts the rest.
      if (listing !== undefined && isWhole) onListing(listing);
      handler.onResponseStart?.(controller, status, { ...headers });
      const pieces = kernel.chance(0.1) ? 1 + Math.floor(kernel.random() * 4) : 1;
      const step = Math.max(1, Math.ceil(bytes.length / pieces));
      const sendFrom = (from: number) => {
        if (from < bytes.length) {
          deliver(kernel.between(0, 5), () => {
            handler.onResponseData?.(controller, ownCopy(bytes.subarray(from, from + step)));
            sendFrom(from + step);
          });
        } else {
          onEnding(DETAIL.test(request.path));
          deliver(kernel.between(0, 2), () => {
            if (isCut) return fail('UND_ERR_SOCKET');
            end();
            if (listing !== undefined && !isGarbled && !isWhole) onListing(listing);
            handler.onResponseEnd?.(controller, {});
          });
        }
      };
      sendFrom(0);
    }

    deliver(kernel.between(0, 3), () => {
      const { refused, lost, silent, slow, error } = weather();
      if (kernel.chance(refused)) return fail('ECONNREFUSED');
      handler.onRequestStart?.(controller, {});
      if (isOver) return;
      onSent(DETAIL.test(request.path));
      if (kernel.chance(silent)) return;
      const isLost = kernel.chance(lost);
      const failure = kernel.chance(error) ? errorAnswer(kernel) : undefined;
      const headers = lowerCase(request.headers);
      kernel.after(kernel.between(0.2, 20), () => {
        const asked = { method: request.method, url: request.path, headers };
        const given = failure ?? answer(asked);
        const ms = kernel.chance(slow) ? kernel.between(500, 15_000) : kernel.between(0.2, 60);
        deliver(ms, () => (isLost ? fail('ECONNRESET') : respond(given)));
      });
    });
    return true;
  }

  return {
    // oxlint-disable-next-line typescript/consistent-type-assertions -- the client uses nothing else of it
    dispatcher: {
      dispatch,
      close: async () => {},
      destroy: async () => {},
    } as unknown as Dispatcher,
    /** Number of requests that are under way. */
    requests: () => underWay,
  };
}

function errorAnswer(kernel: Kernel): Served {
  const status = [500, 503, 429][Math.floor(kernel.random() * 3)] ?? 500;
  const headers: Record<string, string> = kernel.chance(0.3)
    ? { 'retry-after': String(1 + Math.floor(kernel.random() * 30)) }
    : {};
  const body = Buffer.from('{"detail":"simulated"}');
  return { status, headers, body, listing: undefined };
}

/** Returns a copy, because the client frees the memory of what it has read. */
function ownCopy(bytes: Buffer): Buffer {
  return Buffer.from(new Uint8Array(bytes).buffer);
}

function lowerCase(headers: Dispatcher.DispatchOptions['headers']): Record<string, string> {
  const lowered: Record<string, string> = {};
  for (const [name, value] of Object.entries((headers ?? {}) as Record<string, string>)) {
    lowered[name.toLowerCase()] = value;
  }
  return lowered;
}

const LISTING = /^\/v2\/projects\/([^/]+)\/prompts\/$/;
interface Item {
  readonly id: string;
  readonly status: string;
  readonly experiment: string | null;
}

/** Adds to the answers of a service what its clients can read of its listings. */
export function createAnswers(answer: (request: Request) => Answer): (request: Request) => Served {
  const read = new WeakMap<Buffer, ServedListing>();
  return (request) => {
    const { 'if-none-match': known, ...headers } = request.headers;
    const found = answer({ ...request, headers });
    const [, project] = LISTING.exec(request.url ?? '') ?? [];
    if (found.status !== 200 || project === undefined) return { ...found, listing: undefined };
    const { body } = found;
    const listing = read.get(body) ?? { project, items: itemsIn(body) };
    read.set(body, listing);
    const { etag } = found.headers;
    if (etag === undefined || known !== etag) return { ...found, listing };
    return { status: 304, headers: { etag }, body: Buffer.alloc(0), listing };
  };
}

function itemsIn(body: Buffer): ServedListing['items'] {
  const items = JSON.parse(body.toString()) as readonly Item[];
  return items.map(({ id, status, experiment }) => [id, status, experiment ?? undefined]);
}

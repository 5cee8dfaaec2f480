import { randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../../monitor/errors.ts';

/** Positions of the items of a JSON array in its body. The items themselves are not validated. */
export interface ScannedItems {
  /** Start of the first item. Each further item starts after the comma that ends the previous one. */
  readonly first: number;
  readonly ends: Uint32Array;
  /** A hash of 64 bits for each item, as two numbers; equal for equal bytes. */
  readonly hashes: Uint32Array;
  /** Digest of the body; equal for equal bodies. */
  readonly digest: string;
}

/** The scan of one body. */
export interface BodyScan {
  /** Scans the next piece of the body. @throws {ApiError} `too_large`, as soon as there are too many items */
  readonly push: (piece: Uint8Array) => void;
  /**
   * Returns the items; called after the last piece.
   * @throws {ApiError} `invalid_response`, if the body is no JSON array or is nested too deep; as `push`
   */
  finish(): ScannedItems;
}

/** Error messages by the phase in which assembly/item-scanner.ts ended. */
const FAULTS: ReadonlyMap<number, string> = new Map([
  [3, 'the body is not a JSON array'],
  [4, 'the body is nested deeper than 64'],
  [5, 'the body is not JSON'],
]);

/**
 * Creates a scanner that finds up to `maxItems` items in each body. It scans any number of bodies concurrently in
 * constant memory. Hashes and digests are comparable only within one scanner: random seeds keep a service from
 * constructing bytes that collide.
 */
export function createItemScanner(maxItems: number): () => BodyScan {
  const { memory, scan, constant } = instantiate();
  const [state, piece, maxPieceBytes] = [
    constant('STATE'),
    constant('PIECE'),
    constant('MAX_PIECE_BYTES'),
  ];
  const [phase, first, digest] = [constant('PHASE'), constant('FIRST'), constant('DIGEST')];
  const bytes = new Uint8Array(memory);
  const words = new DataView(memory);
  const ends = new Uint32Array(memory, constant('ENDS'));
  const hashes = new Uint32Array(memory, constant('HASHES'));
  randomFillSync(bytes, constant('SEEDS'), 32);
  /** Body whose state is currently in the memory. */
  let current: { saved: Uint8Array } | undefined;

  return () => {
    const body = { saved: new Uint8Array(piece - state) };
    let items = 0;
    const found: { readonly ends: Uint32Array; readonly hashes: Uint32Array }[] = [];

    function run(part: Uint8Array, last: boolean): void {
      if (current !== body) {
        if (current !== undefined) current.saved = bytes.slice(state, piece);
        bytes.set(body.saved, state);
        current = body;
      }
      bytes.set(part, piece);
      const count = scan(part.length, last);
      items += count;
      if (items > maxItems) throw tooMany(maxItems);
      if (count > 0) found.push({ ends: ends.slice(0, count), hashes: hashes.slice(0, 2 * count) });
    }

    return {
      push: (whole) => {
        for (let from = 0; from < whole.length; from += maxPieceBytes) {
          run(whole.subarray(from, from + maxPieceBytes), false);
        }
      },
      finish: () => {
        run(new Uint8Array(), true);
        const fault = FAULTS.get(words.getUint32(phase, true));
        if (fault !== undefined) throw new ApiError('invalid_response', fault);
        return {
          first: words.getUint32(first, true),
          ends: concat(found.map((some) => some.ends)),
          hashes: concat(found.map((some) => some.hashes)),
          digest: words.getBigUint64(digest, true).toString(36),
        };
      },
    };
  };
}

function tooMany(maxItems: number): ApiError {
  return new ApiError(
    'too_large',
    `the listing has more than ${maxItems} items (service.max_items)`,
  );
}

function concat(parts: readonly Uint32Array[]): Uint32Array {
  if (parts.length === 1 && parts[0] !== undefined) return parts[0];
  const whole = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

interface Instance {
  readonly memory: ArrayBuffer;
  readonly scan: (length: number, last: boolean) => number;
  /** Returns an exported constant: an address in the memory, or a number of bytes. */
  readonly constant: (name: string) => number;
}

function instantiate(): Instance {
  const code = readFileSync(join(import.meta.dirname, 'item-scanner.wasm'));
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code));
  const { memory, scan } = exports;
  if (!(memory instanceof WebAssembly.Memory) || typeof scan !== 'function') {
    throw new TypeError(
      'item-scanner.wasm does not export a memory and a scan function: run npm run generate',
    );
  }
  return {
    memory: memory.buffer,
    scan: (length, last) => Number(scan(length, last)),
    constant: (name) => {
      const value = exports[name];
      return value instanceof WebAssembly.Global ? Number(value.value) : Number.NaN;
    },
  };
}

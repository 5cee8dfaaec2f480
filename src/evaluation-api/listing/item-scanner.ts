import { randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../../monitor/errors.ts';

/** The items of a JSON array by their places in its body; what they hold may still be anything. */
export interface ScannedItems {
  /** Where the first item begins; each further one begins behind the comma at which the one before ends. */
  readonly first: number;
  readonly ends: Uint32Array;
  /** Two numbers for each item: 64 bits, equal for equal bytes. */
  readonly hashes: Uint32Array;
  /** Equal for equal bodies. */
  readonly digest: string;
}

/** The scan of one body. */
export interface BodyScan {
  /** @throws {ApiError} `too_large`, as soon as there are too many items */
  readonly push: (piece: Uint8Array) => void;
  /**
   * After the last piece.
   * @throws {ApiError} `invalid_response`, if the body is no JSON array or is nested too deep; as `push`
   */
  finish(): ScannedItems;
}

/** Why there are no items, by the phase in which assembly/item-scanner.ts ended. */
const FAULTS: ReadonlyMap<number, string> = new Map([
  [3, 'the body is not a JSON list'],
  [4, 'the body is nested deeper than 64'],
  [5, 'the body is not JSON'],
]);

/**
 * Makes what scans bodies, any number of them side by side, in memory of one size, and finds up to `maxItems` in each. Hashes
 * and digests can be compared only with others of the same scanner, as each has random seeds: nobody can choose bytes that
 * collide.
 */
export function createItemScanner(maxItems: number): () => BodyScan {
  const { memory, scan, placeOf } = instantiate();
  const [state, piece, maxPieceBytes] = [
    placeOf('STATE'),
    placeOf('PIECE'),
    placeOf('MAX_PIECE_BYTES'),
  ];
  const [phase, first, digest] = [placeOf('PHASE'), placeOf('FIRST'), placeOf('DIGEST')];
  const bytes = new Uint8Array(memory);
  const words = new DataView(memory);
  const ends = new Uint32Array(memory, placeOf('ENDS'));
  const hashes = new Uint32Array(memory, placeOf('HASHES'));
  randomFillSync(bytes, placeOf('SEEDS'), 32);
  /** The body whose state is in the memory. */
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
  return new ApiError('too_large', `the list has more than ${maxItems} items (service.max_items)`);
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
  /** Of a constant of the source: an address in the memory, or a number of bytes. */
  readonly placeOf: (name: string) => number;
}

function instantiate(): Instance {
  const code = readFileSync(join(import.meta.dirname, 'item-scanner.wasm'));
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code));
  const { memory, scan } = exports;
  if (!(memory instanceof WebAssembly.Memory) || typeof scan !== 'function') {
    throw new TypeError('item-scanner.wasm is not what it should be');
  }
  return {
    memory: memory.buffer,
    scan: (length, last) => Number(scan(length, last)),
    placeOf: (name) => {
      const constant = exports[name];
      return constant instanceof WebAssembly.Global ? Number(constant.value) : Number.NaN;
    },
  };
}

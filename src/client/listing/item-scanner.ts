import { randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../../monitor/errors.ts';

/** Items that ended in a part of a body, which are not validated. Valid until the next part is scanned. */
interface ScannedItems {
  readonly count: number;
  /** Position in the body at which each item ends. They can lie up to 63 bytes before the part. */
  readonly ends: Uint32Array;
  /** A hash of 64 bits for each item, as two numbers; equal for equal bytes. */
  readonly hashes: Uint32Array;
  /** Position of the first item of the body; 0 before it. Each further item starts after the comma that ends the previous one. */
  readonly first: number;
  /** Whether an item is open at the end of the part. */
  readonly isOpen: boolean;
}

/** The scan of one body. */
export interface BodyScan {
  /** Scans the next piece of the body. @throws {ApiError} `too_large`, as soon as there are too many items */
  readonly push: (piece: Buffer) => void;
  /**
   * Returns a digest of the body, equal for equal bodies; called after the last piece.
   * @throws {ApiError} `invalid_response`, if the body is no JSON array or is nested too deep; as `push`
   */
  finish(): string;
}

/** Called with each part of a body, at most 64 KiB, and the items that end in it; at the end with an empty part. */
export type OnPart = (part: Buffer, items: ScannedItems) => void;

/** The phase of assembly/item-scanner.ts in which the array is open. */
const WITHIN = 1;
/** Error messages by the phase in which assembly/item-scanner.ts ended. */
const FAULTS: ReadonlyMap<number, string> = new Map([
  [3, 'the body is not a JSON array'],
  [4, 'the body is nested deeper than 64'],
  [5, 'the body is not JSON: its array has no end, or more follows it'],
]);

/**
 * Creates a scanner that finds up to `maxItems` items in each body. It scans any number of bodies concurrently in
 * constant memory. Hashes and digests are comparable only within one scanner: random seeds keep a service from
 * constructing bytes that collide.
 */
export function createItemScanner(maxItems: number): (onPart: OnPart) => BodyScan {
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

  return (onPart) => {
    const body = { saved: new Uint8Array(piece - state) };
    let items = 0;

    function run(part: Buffer, last: boolean): void {
      if (current !== body) {
        if (current !== undefined) current.saved = bytes.slice(state, piece);
        bytes.set(body.saved, state);
        current = body;
      }
      bytes.set(part, piece);
      const count = scan(part.length, last);
      items += count;
      if (items > maxItems) throw tooMany(maxItems);
      const isOpen = words.getUint32(phase, true) === WITHIN;
      onPart(part, { count, ends, hashes, first: words.getUint32(first, true), isOpen });
    }

    return {
      push: (whole) => {
        for (let from = 0; from < whole.length; from += maxPieceBytes) {
          run(whole.subarray(from, from + maxPieceBytes), false);
        }
      },
      finish: () => {
        run(Buffer.of(), true);
        const fault = FAULTS.get(words.getUint32(phase, true));
        if (fault !== undefined) throw new ApiError('invalid_response', fault);
        return words.getBigUint64(digest, true).toString(36);
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

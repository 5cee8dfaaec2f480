import type { Kind } from './records.ts';

/** A change of a prompt or dataset after the world was created. */
export interface Move {
  /** Counts from 1, without gaps. */
  readonly seq: number;
  readonly project: string;
  readonly kind: Kind;
  readonly id: string;
  /** `ABSENT` for a new record; `NONE` for a dataset without a status. */
  readonly from: string;
  /** `ABSENT` for a removed record. */
  readonly to: string;
  /** Epoch ms. */
  readonly at: number;
}

export interface MoveLog {
  add(move: Omit<Move, 'seq'>): void;
  /** Returns the moves after number `seq`, oldest first. */
  after(seq: number): readonly Move[];
  readonly length: number;
}

/** Older moves are removed, so that a simulation can run for weeks. */
const MAX_KEPT = 100_000;

export function createMoveLog(): MoveLog {
  let moves: Move[] = [];
  let length = 0;
  return {
    add(move) {
      length += 1;
      moves.push({ seq: length, ...move });
      if (moves.length > 2 * MAX_KEPT) moves = moves.slice(-MAX_KEPT);
    },
    after: (seq) => moves.slice(Math.max(0, seq - (length - moves.length))),
    get length() {
      return length;
    },
  };
}

import type { Kind } from './records.ts';

/** Something that happened to a prompt or dataset after the world was made. */
export interface Move {
  /** From 1, without gaps. */
  readonly seq: number;
  readonly project: string;
  readonly kind: Kind;
  readonly id: string;
  /** `ABSENT` before it was there; `NONE` for a dataset without a status. */
  readonly from: string;
  /** `ABSENT` once it was removed. */
  readonly to: string;
  /** Epoch ms. */
  readonly at: number;
}

export interface MoveLog {
  add(move: Omit<Move, 'seq'>): void;
  /** The moves after number `seq`, oldest first. */
  after(seq: number): readonly Move[];
  readonly length: number;
}

/** Older moves are forgotten, so that a simulation may run for weeks. */
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

import type * as fc from 'fast-check';

/** Reader of untrusted input. */
export interface Surface {
  readonly name: string;
  /** Fails if an input crashes the reader, or is read wrongly. */
  readonly property: fc.IRawProperty<unknown>;
}

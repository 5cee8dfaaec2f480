import type * as fc from 'fast-check';

/** Something that takes input of others. */
export interface Surface {
  readonly name: string;
  /** Fails when an input crashes it, or is read otherwise than it should be. */
  readonly property: fc.IRawProperty<unknown>;
}

import type { Protection } from '../../domain/protection.ts';

/** A protection that changes at run time. */
export interface ChangingProtection {
  /** The protection at the start. */
  readonly first: Protection;
  /**
   * Returns the protection in force: the same object until it changes. Undefined after its files have been bad for too long;
   * then no request is admitted.
   */
  current(): Protection | undefined;
  /** Calls the listener after each change of `current`. */
  onChange(listener: () => void): void;
}

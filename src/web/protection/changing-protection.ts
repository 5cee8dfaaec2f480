import type { Protection } from '../../domain/protection.ts';

/** A protection that changes at run time. */
export interface ChangingProtection {
  /** The protection at the start. */
  readonly first: Protection;
  /**
   * Resolves to the protection in force: the same object until it changes. Undefined after it has been unreadable for
   * too long; then no request is admitted.
   */
  now(): Promise<Protection | undefined>;
}
